"""Writes the models of the `onnx` package's operator tests, which the wheel holds as code, into a folder: NAME/model.onnx each."""

import pathlib
import sys
import warnings

import onnx
from onnx.backend.test.case.node import collect_testcases

# Some cases divide by zero to have a NaN.
warnings.filterwarnings("ignore")
folder = pathlib.Path(sys.argv[1])
for case in collect_testcases(None):
    path = folder / case.name / "model.onnx"
    path.parent.mkdir()
    onnx.save(case.model, path)
