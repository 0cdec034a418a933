"""Subgraphs that read values around them, local names included."""

import numpy as np
from onnx import helper

from feature_models.feature import BOOL, INT64, SHAPE, body, feature, value


def branch(name, kind, inputs, shape=SHAPE):
    """A branch of one node."""
    out = f"{name}.out"
    return body(name, [helper.make_node(kind, inputs, [out], name=out)], [], [value(out, shape)])


@feature
def if_captures(f):
    """Both branches read a result that is recomputed; each `If` takes another branch."""
    f.op("Exp", ["x"], "skip")
    mean = f.pressure("skip")
    f.constant("zero", 0)
    f.op("Greater", [mean, "zero"], "yes")
    f.op("Less", [mean, "zero"], "no")
    for condition in ("yes", "no"):
        then, other = f"{condition}.then", f"{condition}.else"
        f.op(
            "If",
            [condition],
            f"{condition}.y",
            then_branch=branch(then, "Mul", ["skip", mean]),
            else_branch=branch(other, "Sub", ["skip", mean]),
        )
    f.output(f.finish("yes.y", "no.y"))
    f.state(recomputed=["skip"], never=["yes.y", "no.y"])


@feature
def if_captures_view(f):
    """What a branch reads is a view of the result that is recomputed: the view has to be made again, too."""
    f.op("Exp", ["x"], "skip")
    f.constant("sizes", [2, 512], np.int64)
    f.op("Reshape", ["skip", "sizes"], "view")
    mean = f.pressure("view")
    f.constant("zero", 0)
    f.op("Greater", [mean, "zero"], "yes")
    shape = [2, 512]
    f.op(
        "If",
        ["yes"],
        "y",
        then_branch=branch("then", "Mul", ["view", mean], shape),
        else_branch=branch("else", "Sub", ["view", mean], shape),
    )
    f.output("y", shape)
    f.state(recomputed=["skip", "view"])


@feature
def if_nested(f):
    """Captures through two levels, and local names that a careless rename would hit or take."""
    f.op("Exp", ["x"], "skip")
    f.op("Neg", ["skip"], "other")
    mean = f.pressure("other", copies=4)
    f.constant("zero", 0)
    f.op("Greater", [mean, "zero"], "yes")
    # The name that a clone of `skip` would get is taken by a value of a branch.
    inner_nodes = [
        helper.make_node("Mul", ["skip", "other"], ["skip__remat1"], name="skip__remat1"),
        helper.make_node("Add", ["skip__remat1", "local"], ["inner.then.out"]),
    ]
    inner_then = body("inner.then", inner_nodes, [], [value("inner.then.out")])
    inner = helper.make_node(
        "If", ["yes"], ["inner.y"], then_branch=inner_then, else_branch=branch("inner.else", "Neg", ["other"])
    )
    outer_nodes = [helper.make_node("Abs", ["other"], ["local"]), inner]
    outer_then = body("outer.then", outer_nodes, [], [value("inner.y")])
    f.op("If", ["yes"], "y", then_branch=outer_then, else_branch=branch("outer.else", "Identity", ["skip"]))
    f.output("y")
    f.state(recomputed=["skip", "other"], never=["y"])


def loop_ends(condition):
    """The nodes and outputs every loop body has: run on."""
    return helper.make_node("Identity", [condition], [f"{condition}.out"])


@feature
def loop_captures(f):
    """A loop body reads a result that is recomputed, carries a value and collects another."""
    f.op("Exp", ["x"], "skip")
    mean = f.pressure("skip", copies=4)
    f.constant("count", 3, np.int64)
    nodes = [
        loop_ends("go"),
        helper.make_node("Mul", ["carried", "skip"], ["next"]),
        helper.make_node("ReduceMax", ["next"], ["largest"], keepdims=0),
    ]
    inputs = [value("i", [], INT64), value("go", [], BOOL), value("carried")]
    outputs = [value("go.out", [], BOOL), value("next"), value("largest", [])]
    f.op("Sub", ["x", mean], "start")
    f.op("Loop", ["count", "", "start"], ["y", "all.largest"], body=body("body", nodes, inputs, outputs))
    f.output("y")
    f.output("all.largest", [3])
    f.state(recomputed=["skip"], never=["y"])


@feature
def loop_shadows(f):
    """The body's own input has the name of the result that is recomputed; a branch reads it and an outer value."""
    f.op("Exp", ["x"], "skip")
    f.op("Neg", ["skip"], "other")
    mean = f.pressure("other", copies=4)
    f.constant("count", 2, np.int64)
    nodes = [
        loop_ends("go"),
        helper.make_node(
            "If",
            ["go"],
            ["next"],
            then_branch=branch("then", "Add", ["skip", "other"]),
            else_branch=branch("else", "Identity", ["skip"]),
        ),
    ]
    inputs = [value("i", [], INT64), value("go", [], BOOL), value("skip")]
    outputs = [value("go.out", [], BOOL), value("next")]
    f.op("Loop", ["count", "", "skip"], "looped", body=body("body", nodes, inputs, outputs))
    f.output(f.finish("looped", mean))
    f.state(recomputed=["skip", "other"], never=["looped"])


@feature
def scan_captures(f):
    """The body of a `Scan` over rows reads the whole of a result that is recomputed."""
    f.op("Exp", ["x"], "skip")
    mean = f.pressure("skip")
    nodes = [
        helper.make_node("ReduceMax", ["skip", "first"], ["largest"], keepdims=0),
        helper.make_node("Mul", ["row", "largest"], ["row.out"]),
        helper.make_node("Add", ["sum", "row"], ["sum.out"]),
    ]
    inputs = [value("sum", [256]), value("row", [256])]
    outputs = [value("sum.out", [256]), value("row.out", [256])]
    f.constant("first", [0], np.int64)
    f.constant("nothing", np.zeros(256))
    scanned = body("body", nodes, inputs, outputs)
    f.op("Scan", ["nothing", "x"], ["total", "rows"], body=scanned, num_scan_inputs=1)
    f.output(f.finish("total", "rows", mean))
    f.state(recomputed=["skip"], never=["total"])


@feature
def sequence_map_captures(f):
    """The body of a `SequenceMap` reads a result that is recomputed. The size of what it returns has to be stated."""
    f.op("Exp", ["x"], "skip")
    f.op("Gather", ["x", f.constant("first", [0], np.int64)], "row", axis=0)
    f.op("SequenceConstruct", ["row", "row"], "rows")
    mean = f.pressure("skip")
    nodes = [helper.make_node("Mul", ["element", "skip"], ["element.out"])]
    mapped = body("body", nodes, [value("element", [1, 256])], [value("element.out")])
    f.op("SequenceMap", ["rows"], "products", body=mapped)
    f.op("SequenceAt", ["products", f.constant("one", 1, np.int64)], "product")
    f.output(f.finish("product", mean))
    f.state(recomputed=["skip"], never=["products"], sizes={"products": 8192, "product": 4096})
