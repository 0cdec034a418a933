"""Results that share the memory of others, and operands that are no results."""

import numpy as np
from onnx import numpy_helper

from feature_models.feature import SHAPE, feature, feature_of


@feature
def views(f):
    """Views of views, one of them through a copy, of a base that is recomputed: all of them are made again."""
    f.op("Exp", ["x"], "base")
    f.constant("cube", [4, 16, 16], np.int64)
    f.constant("front", [0], np.int64)
    f.op("Reshape", ["base", "cube"], "cubed")
    f.op("Unsqueeze", ["cubed", "front"], "boxed")
    f.op("Transpose", ["boxed"], "turned", perm=[0, 1, 3, 2])
    f.op("Flatten", ["turned"], "flat", axis=2)
    f.op("Squeeze", ["boxed", "front"], "again")
    mean = f.pressure("again")
    f.op("Identity", ["again"], "same")
    f.op("Mul", ["same", "same"], "square")
    f.op("Squeeze", ["turned", "front"], "turned.cube")
    f.output(f.finish("square", "turned.cube", mean), [4, 16, 16])
    f.output("flat", SHAPE)
    f.state(recomputed=["base", "again"])


@feature
def reshape_to_computed_shape(f):
    """The shape of a view is computed from the shape of a result that is recomputed."""
    f.op("Exp", ["x"], "base")
    f.constant("second", 1, np.int64)
    f.constant("minus one", [-1], np.int64)
    f.constant("front", [0], np.int64)
    f.op("Shape", ["base"], "shape")
    f.op("Gather", ["shape", "second"], "width", axis=0)
    f.op("Unsqueeze", ["width", "front"], "width.1d")
    f.op("Concat", ["width.1d", "minus one"], "target", axis=0)
    f.op("Reshape", ["base", "target"], "view")
    mean = f.pressure("view")
    f.op("Neg", ["view"], "negative")
    f.output(f.finish("negative", mean), [256, 4])
    f.state(recomputed=["base", "view"])


@feature
def constant_nodes(f):
    """Operands from `Constant` nodes instead of initializers: nothing to recompute about them."""
    shape = numpy_helper.from_array(np.array([2, 512], np.int64), "value")
    f.op("Constant", [], "sizes", value=shape)
    f.op("Constant", [], "two", value_float=2.0)
    f.op("Mul", ["x", "two"], "double")
    f.op("Reshape", ["double", "sizes"], "view")
    mean = f.pressure("view")
    f.op("Constant", [], "three", value_float=3.0)
    f.op("Mul", ["view", "three"], "six")
    f.output(f.finish("six", mean), [2, 512])
    f.state(recomputed=["double"])


@feature_of([16, 512])
def overwritten(f):
    """Kernels that write their result over the operand: over the only reader's, and over one that others read before."""
    f.op("Exp", ["x"], "base")
    f.op("Softmax", ["base"], "share", axis=-1)
    f.op("Relu", ["share"], "positive")
    mean = f.pressure("positive")
    f.op("Mul", ["positive", "x"], "scaled")
    f.op("Neg", ["scaled"], "negative")
    f.op("Add", ["negative", mean], "moved")
    f.op("Sigmoid", ["scaled"], "gate")
    f.output(f.finish("moved", "gate"), [16, 512])
    f.state(recomputed=["base", "share", "positive"])
