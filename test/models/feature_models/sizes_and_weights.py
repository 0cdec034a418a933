"""Open and empty sizes; weights kept outside or in sparse form."""

import numpy as np
from onnx import helper, numpy_helper

from feature_models.feature import feature, value


@feature
def dynamic_batch(f):
    """A named batch dimension, and a shape computed from it."""
    f.inputs = [value("x", ["batch", 256])]
    f.op("Exp", ["x"], "base")
    f.op("Shape", ["base"], "batch.1d", start=0, end=1)
    f.constant("square", [16, 16], np.int64)
    f.op("Concat", ["batch.1d", "square"], "target", axis=0)
    f.op("Reshape", ["base", "target"], "view")
    mean = f.pressure("view")
    f.op("Neg", ["view"], "negative")
    f.output(f.finish("negative", mean), ["batch", 16, 16])
    f.state(recomputed=["base"], dims={"batch": 4})


@feature
def external_data(f):
    """Weights in a file beside the model."""
    f.constant("weight", np.linspace(-1, 1, 256))
    f.keep_outside(f.weights[-1])
    f.op("Mul", ["x", "weight"], "skip")
    f.output(f.finish("skip", f.pressure("skip")))
    f.state(recomputed=["skip"])


@feature
def sparse_initializer(f):
    """A weight in coordinate form."""
    values = numpy_helper.from_array(np.array([1.5, -2.0, 0.25], np.float32), "weight")
    indices = numpy_helper.from_array(np.array([3, 70, 200], np.int64), "weight.indices")
    f.sparse.append(helper.make_sparse_tensor(values, indices, [256]))
    f.op("Add", ["x", "weight"], "shifted")
    f.op("Exp", ["shifted"], "skip")
    f.output(f.finish("skip", f.pressure("skip")))
    f.state(recomputed=["shifted", "skip"])


@feature
def zero_size(f):
    """Tensors without elements, alive for long."""
    f.constant("none", [0], np.int64)
    f.op("Slice", ["x", "none", "none"], "empty")
    f.op("Exp", ["empty"], "empty.exp")
    f.op("Exp", ["x"], "skip")
    mean = f.pressure("skip")
    f.op("Concat", ["skip", "empty.exp"], "joined", axis=0)
    f.output(f.finish("joined", mean))
    f.output("empty.exp", [0, 256])
    f.state(recomputed=["skip"])
