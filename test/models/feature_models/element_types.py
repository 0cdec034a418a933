"""Elements other than 32-bit floats."""

import numpy as np
from onnx import TensorProto, helper

from feature_models.feature import BOOL, FLOAT, feature


@feature
def strings(f):
    """Strings made from numbers, joined and compared."""
    f.op("Gather", ["x", f.constant("first", [0], np.int64)], "row", axis=0)
    f.op("Cast", ["row"], "rounded", to=TensorProto.INT32)
    f.op("Cast", ["rounded"], "text", to=TensorProto.STRING)
    f.weights.append(helper.make_tensor("suffix", TensorProto.STRING, [1], [b"0"]))
    f.op("StringConcat", ["text", "suffix"], "skip")
    f.op("Equal", ["skip", "suffix"], "same")
    mean = f.pressure("x")
    f.op("Cast", ["skip"], "number", to=FLOAT)
    f.output(f.finish("number", mean), [1, 256])
    f.output("same", [1, 256], BOOL)
    f.state(recomputed=["skip"])


@feature
def half_precision(f):
    """Parts in float16 and bfloat16."""
    f.op("Cast", ["x"], "x.half", to=TensorProto.FLOAT16)
    f.op("Sigmoid", ["x.half"], "skip.half")
    f.op("Cast", ["x"], "skip.brain", to=TensorProto.BFLOAT16)
    f.op("Cast", ["skip.half"], "early", to=FLOAT)
    mean = f.pressure("early")
    f.op("Add", ["skip.half", "x.half"], "sum.half")
    f.op("Cast", ["sum.half"], "a", to=FLOAT)
    f.op("Cast", ["skip.brain"], "b", to=FLOAT)
    f.output(f.finish("a", "b", mean))
    f.state(recomputed=["skip.half"])
