"""The command line: `python -m remat_opt`, and the program `remat-opt` that installing the package puts beside the
interpreter."""

import sys

from . import _environment as _environment
from ._native import run


def main() -> int:
    """Runs the command line of this process, and gives its exit status (see `remat-opt --help`)."""
    return run(["remat-opt", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
