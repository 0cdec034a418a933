"""The command line: `python -m remat_opt`, and the program `remat-opt` that installing the package puts beside the
interpreter."""

import sys

from . import _environment as _environment
from ._native import run


def main() -> int:
    """Runs the command line of this process, and gives its exit status (see `remat-opt --help`)."""
    if sys.argv[1:2] == ["fit"]:
        return _fit(sys.argv[2:])
    return run(["remat-opt", *sys.argv[1:]])


def _fit(words: list[str]) -> int:
    """The command that runs in Python."""
    try:
        from .torch._gpu.command import main as fit
    except ImportError as error:
        print(f"error: `fit` needs PyTorch ({error}): `pip install 'remat-opt[torch]'`", file=sys.stderr)
        return 2
    return fit(words)


if __name__ == "__main__":
    sys.exit(main())
