"""The form of nodes: names, domains, versions, order."""

import numpy as np

from feature_models.feature import feature, value


@feature
def absent_names(f):
    """Operands and results that are left out, in the middle and at the end."""
    f.constant("top", 1.5)
    f.constant("scales", [1, 2])
    f.op("Clip", ["x", "", "top"], "clipped")
    f.op("Resize", ["clipped", "", "scales"], "wide", mode="nearest")
    f.op("Dropout", ["wide", "", ""], ["skip", ""])
    f.output(f.finish("skip", f.pressure("skip")), [4, 512])
    f.state(recomputed=["clipped", "wide", "skip"])


@feature
def unnamed_nodes(f):
    """Nodes without names; one named node has the name that an unnamed one would get."""
    f.op("Exp", ["x"], "e", name="")
    f.op("Neg", ["e"], "n", name="")
    f.op("Tanh", ["n"], "skip", name="Neg_1")
    f.output(f.finish("skip", f.pressure("skip")))
    f.state(recomputed=["Neg_1"])


@feature
def names_like_clones(f):
    """Nodes, values and an input have the names that clones would get."""
    f.inputs.append(value("a__remat1"))
    f.op("Exp", ["x"], "a", name="a")
    f.op("Neg", ["a"], "a__remat2", name="a__remat1")
    f.op("Mul", ["a", "a__remat2"], "skip", name="skip")
    mean = f.pressure("skip")
    f.op("Add", ["a", "a__remat1"], "skip__remat1", name="skip__remat1_1")
    f.output(f.finish("skip", "skip__remat1", mean))
    f.state(recomputed=["skip"])


@feature
def contrib_operators(f):
    """Operators of the runtime's own domain."""
    own = {"domain": "com.microsoft"}
    f.constant("square", np.eye(256)[:8] / 2)
    f.constant("bias", np.linspace(-1, 1, 8))
    f.op("FusedMatMul", ["x", "square"], "product", transB=1, alpha=0.5, **own)
    f.op("BiasGelu", ["product", "bias"], "curved", **own)
    f.op("Gelu", ["x"], "skip", **own)
    f.op("QuickGelu", ["skip"], "quick", alpha=1.5, **own)
    mean = f.pressure("quick")
    f.op("ReduceMax", ["curved"], "largest", keepdims=0)
    f.output(f.finish("skip", "quick", "largest", mean))
    f.state(recomputed=["skip", "quick"])


@feature
def newer_operators(f):
    """Operators of opset 23 in a file of IR version 11."""
    f.ir_version, f.opsets[""] = 11, 23
    f.constant("scale", np.linspace(0.5, 1.5, 256))
    f.op("RMSNormalization", ["x", "scale"], "normal")
    f.op("Gelu", ["normal"], "skip", approximate="tanh")
    f.output(f.finish("skip", f.pressure("skip")))
    f.state(recomputed=["normal", "skip"])


@feature
def unsorted(f):
    """Nodes in reverse order. The standard forbids it, the runtime takes it; what is written is sorted."""
    f.op("Exp", ["x"], "skip")
    f.output(f.finish("skip", f.pressure("skip")))
    f.state(recomputed=["skip"])
    f.nodes.reverse()
