"""Operators that draw random numbers: never repeated."""

import numpy as np

from feature_models.feature import FLOAT, feature


@feature
def dropout_training(f):
    """Dropout that drops, with a seed: never repeated; what is made of its result and of its mask is."""
    f.constant("first", [0], np.int64)
    f.constant("ratio", 0.5)
    f.constant("training", True, np.bool_)
    f.op("Gather", ["x", "first"], "row", axis=0)
    f.op("Dropout", ["row", "ratio", "training"], ["dropped", "mask"], seed=7)
    f.op("Concat", ["dropped"] * 4, "tall", axis=0)
    f.op("Exp", ["tall"], "skip")
    mean = f.pressure("skip")
    f.op("Cast", ["mask"], "mask.float", to=FLOAT)
    f.output(f.finish("skip", mean, "mask.float"))
    f.state(recomputed=["tall", "skip"], never=["dropped"])


@feature
def random_operators(f):
    """The seeded random operators: none is repeated."""
    f.constant("first", [0], np.int64)
    f.op("Gather", ["x", "first"], "row", axis=0)
    f.op("RandomNormalLike", ["row"], "normal", seed=1.0, dtype=FLOAT)
    f.op("RandomUniform", [], "uniform", shape=[1, 256], seed=2.0)
    f.op("Bernoulli", ["uniform"], "coin", seed=4.0)
    f.op("Concat", ["normal", "uniform", "coin"] * 3, "tall", axis=0)
    f.op("Exp", ["tall"], "skip")
    f.output(f.finish("skip", f.pressure("skip")), [9, 256])
    f.state(recomputed=["tall", "skip"], never=["normal", "uniform", "coin"])
