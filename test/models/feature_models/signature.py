"""Graph inputs and outputs."""

import numpy as np

from feature_models.feature import feature, value


@feature
def output_read_later(f):
    """A graph output stays resident; what is made of it early is recomputed from it."""
    f.op("Exp", ["x"], "kept")
    f.op("Neg", ["kept"], "skip")
    f.output(f.finish("skip", "kept", f.pressure("skip")))
    f.output("kept")
    f.state(recomputed=["skip"])


@feature
def output_is_view(f):
    """A graph output that is a view of a result that is recomputed: the runtime copies it."""
    f.op("Exp", ["x"], "base")
    f.constant("sizes", [2, 512], np.int64)
    f.op("Reshape", ["base", "sizes"], "returned")
    f.op("Identity", ["base"], "also.returned")
    mean = f.pressure("base")
    f.op("Neg", ["returned"], "negative")
    f.op("Mul", ["base", mean], "late")
    f.output("returned", [2, 512])
    f.output("also.returned")
    f.output("negative", [2, 512])
    f.output("late")
    f.state(recomputed=["base"])


@feature
def output_is_source(f):
    """A graph input and an initializer are graph outputs, too."""
    f.constant("weight", np.linspace(-1, 1, 256))
    f.op("Mul", ["x", "weight"], "skip")
    f.output(f.finish("skip", f.pressure("skip")))
    f.output("x")
    f.output("weight", [256])
    f.state(recomputed=["skip"])


@feature
def output_twice(f):
    """One result stands twice among the outputs."""
    f.op("Exp", ["x"], "skip")
    f.finish("skip", f.pressure("skip"))
    f.output("y")
    f.output("y")
    f.state(recomputed=["skip"])


@feature
def output_and_intermediate(f):
    """Of two results one is a graph output, the other is needed again: the recompute makes a transient duplicate of the first."""
    f.constant("sizes", [1, 4], np.int64)
    f.constant("five", np.ones((5, 1)))
    f.op("Gather", ["x", f.constant("first", [0], np.int64)], "row", axis=0)
    f.op("Mul", ["row", "five"], "rows")
    f.op("Split", ["rows", "sizes"], ["returned", "skip"], axis=0)
    f.output(f.finish("skip", f.pressure("skip")))
    f.output("returned", [1, 256])
    f.state(recomputed=["returned"])


@feature
def overridable_initializer(f):
    """An initializer that is a graph input as well: a default that the caller may replace."""
    f.constant("factor", np.linspace(-1, 1, 256))
    f.inputs.append(value("factor", [256]))
    f.op("Mul", ["x", "factor"], "skip")
    f.output(f.finish("skip", f.pressure("skip")))
    f.state(recomputed=["skip"])
