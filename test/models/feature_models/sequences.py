"""Sequences and optional values."""

import numpy as np
from onnx import helper

from feature_models.feature import BOOL, FLOAT, INT64, feature


@feature
def sequences(f):
    """A sequence is recomputed with its elements; it is long-lived as a whole."""
    f.op("Exp", ["x"], "a")
    f.op("Neg", ["x"], "b")
    f.op("SequenceConstruct", ["a", "b"], "pair")
    f.constant("one", 1, np.int64)
    f.op("SequenceInsert", ["pair", "x", "one"], "triple")
    f.op("SequenceAt", ["triple", "one"], "middle")
    mean = f.pressure("middle")
    f.op("SequenceErase", ["triple", "one"], "back")
    f.op("ConcatFromSequence", ["back"], "joined", axis=0)
    f.op("SequenceLength", ["triple"], "length")
    f.op("SplitToSequence", ["joined"], "rows", axis=0, keepdims=0)
    f.op("SequenceAt", ["rows", "one"], "row")
    f.output(f.finish("joined", "row", mean), [8, 256])
    f.output("length", [], INT64)
    f.state(recomputed=["triple"])


@feature
def sequence_output(f):
    """A sequence that is an output of the model and read later."""
    f.op("Exp", ["x"], "skip")
    f.op("Gather", ["x", f.constant("first", [0], np.int64)], "row", axis=0)
    f.op("SequenceConstruct", ["row", "row"], "pair")
    mean = f.pressure("skip")
    f.op("ConcatFromSequence", ["pair"], "joined", axis=0)
    f.op("ReduceMax", ["joined"], "largest", keepdims=0)
    f.output(f.finish("skip", "largest", mean))
    f.outputs.append(helper.make_tensor_sequence_value_info("pair", FLOAT, [1, 256]))
    f.state(recomputed=["skip"])


@feature
def optionals(f):
    """An optional value is recomputed with what it holds."""
    f.op("Exp", ["x"], "a")
    f.op("Optional", ["a"], "maybe")
    f.op("OptionalHasElement", ["maybe"], "there")
    mean = f.pressure("x")
    f.op("OptionalGetElement", ["maybe"], "skip")
    f.output(f.finish("skip", mean))
    f.output("there", [], BOOL)
    f.state(recomputed=["a", "maybe"])
