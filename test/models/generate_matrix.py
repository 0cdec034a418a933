#!/usr/bin/env python3
"""Writes the models of the test matrix, which are not kept in the repository.

    python test/models/generate_matrix.py FOLDER [NAME...]

Needs `onnx` and `numpy`. The files are the same on every run and machine. See `matrix/` for what the models are.
"""

import pathlib
import sys

from matrix import BUILDERS


def generate(folder, names=()):
    """Writes the named models, or all of them."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for build in BUILDERS:
        if not names or build.__name__ in names:
            build().save(folder)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    generate(sys.argv[1], sys.argv[2:])
