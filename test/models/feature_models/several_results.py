"""Operators with several results, or with operands that they change."""

import numpy as np

from feature_models.feature import FLOAT, IMAGE, feature, feature_of


@feature
def split(f):
    """One of two results is needed again: the recompute makes both."""
    f.op("Exp", ["x"], "e")
    f.op("Concat", ["e", "x"], "joined", axis=0)
    f.op("Split", ["joined"], ["skip", "rest"], num_outputs=2, axis=0)
    mean = f.pressure("rest")
    f.output(f.finish("skip", mean))
    f.state(recomputed=["skip"])


@feature
def top_k(f):
    """The indices are needed again, the values are not."""
    f.constant("k", [256], np.int64)
    f.op("TopK", ["x", "k"], ["values", "skip"], axis=1)
    mean = f.pressure("values")
    f.op("Cast", ["skip"], "places", to=FLOAT)
    f.output(f.finish("places", mean))
    f.state(recomputed=["values"])


@feature
def layer_norm(f):
    """Mean and inverse deviation are results beside the normalized value; the middle one is left out."""
    f.constant("scale", np.linspace(0.5, 1.5, 256))
    f.op("LayerNormalization", ["x", "scale"], ["skip", "", "deviation"], axis=1)
    mean = f.pressure("skip")
    f.output(f.finish("skip", mean, "deviation"))
    f.state(recomputed=["skip"])


@feature_of(IMAGE)
def batch_norm_training(f):
    """Training mode updates the running statistics where they lie: never repeated, what is made of its result is."""
    for name, start in (("scale", 0.5), ("bias", -0.5), ("running.mean", 0.0), ("running.var", 1.0)):
        f.constant(name, np.linspace(start, start + 0.5, 4))
    f.op("MaxPool", ["x"], "small", kernel_shape=[2, 2], strides=[2, 2])
    operands = ["small", "scale", "bias", "running.mean", "running.var"]
    f.op("BatchNormalization", operands, ["normal", "new.mean", "new.var"], training_mode=1)
    f.op("Concat", ["normal"] * 4, "tall", axis=0)
    f.op("Exp", ["tall"], "skip")
    f.output(f.finish("skip", f.pressure("skip")), [4, 4, 8, 8])
    f.output("new.mean", [4])
    f.output("new.var", [4])
    f.state(recomputed=["tall", "skip"], never=["normal"])


@feature_of(IMAGE)
def batch_norm(f):
    """Inference mode only reads its statistics: recomputed like any other operator."""
    for name, start in (("scale", 0.5), ("bias", -0.5), ("mean", 0.0), ("var", 1.0)):
        f.constant(name, np.linspace(start, start + 0.5, 4))
    f.op("BatchNormalization", ["x", "scale", "bias", "mean", "var"], "skip")
    f.output(f.finish("skip", f.pressure("skip")), IMAGE)
    f.state(recomputed=["skip"])


@feature_of(IMAGE)
def max_pool_indices(f):
    """Values and indices of a pooling; both are needed again by its inverse."""
    f.op("MaxPool", ["x"], ["values", "places"], kernel_shape=[1, 1], strides=[1, 1])
    mean = f.pressure("values")
    f.op("MaxUnpool", ["values", "places"], "spread", kernel_shape=[1, 1], strides=[1, 1])
    f.output(f.finish("spread", mean), IMAGE)
    f.state(recomputed=["values"])


@feature
def lstm(f):
    """Absent operands in the middle, and of three results only the second is needed again."""
    random = np.random.default_rng(3)
    f.constant("w", random.standard_normal((1, 32, 16)) / 4)
    f.constant("r", random.standard_normal((1, 32, 8)) / 4)
    f.constant("start", np.full((1, 1, 8), 0.1))
    f.constant("sizes", [64, 1, 16], np.int64)
    f.op("Exp", ["x"], "e")
    f.op("Reshape", ["e", "sizes"], "steps")
    f.op("LSTM", ["steps", "w", "r", "", "", "start"], ["", "last", "cell"], hidden_size=8)
    mean = f.pressure("e")
    f.op("ReduceMax", ["last"], "largest", keepdims=0)
    f.op("ReduceMax", ["cell"], "largest.cell", keepdims=0)
    f.output(f.finish("e", "largest", "largest.cell", mean))
    f.state(recomputed=["e"])
