"""Runs a script in a process whose heap is counted. Promises of `remat_opt.torch.backend` then hold for all that a step
takes on a CPU, code before its first graph and kernels of eager ops among it.

    python -m remat_opt.torch train.py --epochs 3
"""

from __future__ import annotations

import signal
import subprocess
import sys

from ._metered import metered

_USAGE = "usage: python -m remat_opt.torch SCRIPT [ARGUMENT...], or -m MODULE [ARGUMENT...]"


def main(arguments: list[str]) -> int:
    """Runs a script as `python` does.

    Args:
        arguments: The script and its arguments.

    Returns:
        Its exit status.
    """
    if not arguments or arguments == ["-m"]:
        print(_USAGE, file=sys.stderr)
        return 2
    try:
        with metered() as environment:
            # Ctrl-C reaches the script, too, which decides what becomes of it.
            signal.signal(signal.SIGINT, lambda *_: None)
            status = subprocess.run([sys.executable, *arguments], env=environment, check=False).returncode
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
