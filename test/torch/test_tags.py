"""Plans as tags for the passes of other programs."""

import pathlib
import sys

import models
import pytest
import remat_opt.torch
import torch
from remat_opt.torch._trace import trace
from torch import fx
from torch.utils.checkpoint import CheckpointPolicy

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "examples"))


def step(name):
    """A step as one graph, whose backward is marked as autograd marks it."""
    traced = trace(*models.make(name))
    forward = set()
    todo = [traced.loss]
    while todo:
        node = todo.pop()
        if node not in forward:
            forward.add(node)
            todo.extend(node.all_input_nodes)
    traced.graph.output((traced.loss, *traced.gradients.values()))
    for node in traced.graph.nodes:
        if node.op == "call_function" and node not in forward:
            node.meta["autograd_backward"] = True
    return fx.GraphModule(traced.root, traced.graph), forward


def test_what_the_plan_runs_again_is_tagged_and_nothing_of_the_backward(monkeypatch):
    import torchtitan_policy

    gm, forward = step("gpt-tiny")
    monkeypatch.setenv("REMAT_OPT_MEMORY", "min")
    assert torchtitan_policy.remat_policy(gm, config=None) is gm
    tags = {node: node.meta["recompute"] for node in gm.graph.nodes if "recompute" in node.meta}
    assert set(tags) <= forward
    assert CheckpointPolicy.MUST_RECOMPUTE in tags.values()
    assert CheckpointPolicy.MUST_SAVE in tags.values()
    (report,) = remat_opt.torch.reports()
    assert report.recomputes > 0
    assert report.fallback is None


def test_without_need_everything_is_saved():
    gm, _ = step("gpt-tiny")
    report = remat_opt.torch.tag(gm, "1TB", lambda node: bool(node.meta.get("autograd_backward")))
    assert report.recomputes == 0
    tags = [node.meta["recompute"] for node in gm.graph.nodes if "recompute" in node.meta]
    assert set(tags) == {CheckpointPolicy.MUST_SAVE}


def test_a_graph_that_cannot_be_planned_names_the_node():
    def branch(x):
        return torch.cond(x.sum() > 0, lambda y: y.sin(), lambda y: y.cos(), (x,))

    gm = torch.fx.experimental.proxy_tensor.make_fx(branch, tracing_mode="fake")(torch.ones(3))
    with pytest.raises(remat_opt.torch.UnsupportedGraph, match="cond"):
        remat_opt.torch.tag(gm, "60%", lambda _: False)
