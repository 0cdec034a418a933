#!/usr/bin/env python3
"""Writes the models of `bodies/`: control flow whose subgraphs take most of the memory.

    python test/models/generate_bodies.py [FOLDER]

Needs `onnx` and `numpy`. The files are the same on every run and machine. Each subgraph is a step of training, forward and backward, of a
chain of equal layers that share one weight: the activation is z * sigmoid(z), and what the layers leave for the backward pass is what
recomputing saves.
"""

import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROWS, WIDTH = 1024, 64
OPSET = 17


def tensor(name, *dims, element=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, element, dims)


def constant(name, value, dtype=np.float32):
    return numpy_helper.from_array(np.asarray(value, dtype=dtype), name)


class Step:
    """Nodes of one step: from rows `x`, a `target` and a weight, the loss and the next weight."""

    def __init__(self, prefix):
        self.prefix = prefix
        self.nodes = []

    def add(self, kind, inputs, name, **attributes):
        result = f"{self.prefix}{name}"
        self.nodes.append(helper.make_node(kind, inputs, [result], name=result, **attributes))
        return result

    def train(self, x, target, weight, layers):
        add, below, kept = self.add, x, []
        for place in range(layers):
            z = add("MatMul", [below, weight], f"z{place}")
            s = add("Sigmoid", [z], f"s{place}")
            kept.append((below, z, s))
            below = add("Mul", [z, s], f"h{place}")
        grad = add("Sub", [below, target], "error")
        square = add("Mul", [grad, grad], "square")
        loss = add("ReduceMean", [square], "loss", keepdims=0)
        turned = add("Transpose", [weight], "turned", perm=[1, 0])
        change = None
        for place, (below, z, s) in reversed(list(enumerate(kept))):
            slope = add("Sub", ["one", s], f"d_one{place}")
            slope = add("Mul", [z, slope], f"d_z{place}")
            slope = add("Add", [slope, "one"], f"d_sum{place}")
            slope = add("Mul", [s, slope], f"d_slope{place}")
            dz = add("Mul", [grad, slope], f"dz{place}")
            flat = add("Transpose", [below], f"t{place}", perm=[1, 0])
            dw = add("MatMul", [flat, dz], f"dw{place}")
            change = dw if change is None else add("Add", [change, dw], f"change{place}")
            if place:
                grad = add("MatMul", [dz, turned], f"dh{place}")
        scaled = add("Mul", [change, "rate"], "scaled")
        return loss, add("Sub", [weight, scaled], "next")


def loop_body(prefix, layers, name):
    """What a Loop repeats: it carries the weight and collects the loss."""
    step = Step(prefix)
    go_on = step.add("Identity", [f"{prefix}cond"], "go_on")
    loss, weight = step.train("x", "target", f"{prefix}w", layers)
    inputs = [
        tensor(f"{prefix}i", element=TensorProto.INT64),
        tensor(f"{prefix}cond", element=TensorProto.BOOL),
        tensor(f"{prefix}w", WIDTH, WIDTH),
    ]
    outputs = [tensor(go_on, element=TensorProto.BOOL), tensor(weight, WIDTH, WIDTH), tensor(loss)]
    return helper.make_graph(step.nodes, name, inputs, outputs)


def branch(prefix, layers, name):
    step = Step(prefix)
    loss, weight = step.train("x", "target", "w", layers)
    return helper.make_graph(step.nodes, name, [], [tensor(weight, WIDTH, WIDTH), tensor(loss)])


def model(name, nodes, inputs, outputs, more=()):
    constants = [constant("one", 1), constant("rate", 1e-4), *more]
    graph = helper.make_graph(nodes, name, inputs, outputs, constants)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
    onnx.checker.check_model(made, full_check=True)
    return made


def inputs():
    return [tensor("x", ROWS, WIDTH), tensor("target", ROWS, WIDTH), tensor("w", WIDTH, WIDTH)]


def loop():
    """Four iterations of six layers."""
    body = loop_body("b.", 6, "iteration")
    node = helper.make_node("Loop", ["count", "", "w"], ["trained", "losses"], name="loop", body=body)
    return model(
        "loop",
        [node],
        inputs(),
        [tensor("trained", WIDTH, WIDTH), tensor("losses", 4)],
        [constant("count", 4, np.int64)],
    )


def is_small(name):
    """Whether the squares of `x` are small on average, as those of made-up inputs are: data decides."""
    return [
        helper.make_node("Mul", ["x", "x"], ["squares"], name="squares"),
        helper.make_node("ReduceMean", ["squares"], ["size"], name="size", keepdims=0),
        helper.make_node("Less", ["size", "limit"], [name], name=name),
    ]


def conditional():
    """Branches of eight and of three layers."""
    node = helper.make_node(
        "If",
        ["is_deep"],
        ["trained", "loss"],
        name="if",
        then_branch=branch("t.", 8, "deep"),
        else_branch=branch("e.", 3, "shallow"),
    )
    outputs = [tensor("trained", WIDTH, WIDTH), tensor("loss")]
    return model("conditional", [*is_small("is_deep"), node], inputs(), outputs, [constant("limit", 100)])


def scan():
    """One step of six layers for each of three batches."""
    step = Step("b.")
    loss, weight = step.train("b.x", "b.target", "b.w", 6)
    body = helper.make_graph(
        step.nodes,
        "batch",
        [tensor("b.w", WIDTH, WIDTH), tensor("b.x", ROWS, WIDTH), tensor("b.target", ROWS, WIDTH)],
        [tensor(weight, WIDTH, WIDTH), tensor(loss)],
    )
    node = helper.make_node(
        "Scan", ["w", "x", "target"], ["trained", "losses"], name="scan", body=body, num_scan_inputs=2
    )
    taken = [tensor("x", 3, ROWS, WIDTH), tensor("target", 3, ROWS, WIDTH), tensor("w", WIDTH, WIDTH)]
    return model("scan", [node], taken, [tensor("trained", WIDTH, WIDTH), tensor("losses", 3)])


def nested():
    """A Loop in a branch, and around it a large value that waits for the end."""
    then = helper.make_graph(
        [helper.make_node("Loop", ["count", "", "w"], ["t.w", "t.all"], name="t.loop", body=loop_body("b.", 6, "iteration"))],
        "train",
        [],
        [tensor("t.w", WIDTH, WIDTH), tensor("t.all", 2)],
    )
    other = helper.make_graph(
        [
            helper.make_node("Identity", ["w"], ["e.w"], name="e.w"),
            helper.make_node("Expand", ["one", "two"], ["e.all"], name="e.all"),
        ],
        "leave",
        [],
        [tensor("e.w", WIDTH, WIDTH), tensor("e.all", 2)],
    )
    nodes = [
        *is_small("trains"),
        helper.make_node("Sigmoid", ["x"], ["early"], name="early"),
        helper.make_node("If", ["trains"], ["trained", "losses"], name="if", then_branch=then, else_branch=other),
        helper.make_node("MatMul", ["early", "trained"], ["late"], name="late"),
        helper.make_node("ReduceMean", ["late"], ["mean"], name="mean", keepdims=0),
    ]
    return model(
        "nested",
        nodes,
        inputs(),
        [tensor("trained", WIDTH, WIDTH), tensor("losses", 2), tensor("mean")],
        [constant("limit", 100), constant("count", 2, np.int64), constant("two", [2], np.int64)],
    )


if __name__ == "__main__":
    target = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "bodies"
    target.mkdir(exist_ok=True)
    for build in (loop, conditional, scan, nested):
        path = target / f"{build.__name__}.onnx"
        path.write_bytes(build().SerializeToString(deterministic=True))
        print(f"{path}: {path.stat().st_size} bytes")
