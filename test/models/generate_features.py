#!/usr/bin/env python3
"""Writes the models of `features/`: for each feature of ONNX that touches rewriting, one small model that has it.

    python test/models/generate_features.py [FOLDER]

Needs `onnx` and `numpy`. The files are the same on every run and machine. See `feature_models/` for what the models are, and README.md
for what is stated in the metadata of each.
"""

import pathlib
import sys

import onnx
from feature_models import FEATURES, Feature


def write(build, shape, folder):
    name = build.__name__
    f = Feature(name, shape)
    build(f)
    model = f.proto()
    path = folder / f"{name}.onnx"
    if f.outside:
        path.with_suffix(".bin").write_bytes(f.outside)
    path.write_bytes(model.SerializeToString(deterministic=True))
    if name != "unsorted":
        # Shape inference of `onnx` knows sparse initializers in `Constant` only.
        onnx.checker.check_model(path, full_check=name != "sparse_initializer")
    print(f"{path}: {len(f.nodes)} nodes, {path.stat().st_size} bytes")


if __name__ == "__main__":
    target = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "features"
    target.mkdir(exist_ok=True)
    for build, shape in FEATURES:
        write(build, shape, target)
