"""Plans as tags for the passes of other programs."""

import pathlib
import sys

import models
import pytest
import remat_opt.torch
import torch
from remat_opt.torch._emit import original
from remat_opt.torch._peak import peak_above
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


def is_backward(node):
    return bool(node.meta.get("autograd_backward"))


def test_what_the_plan_runs_again_is_tagged_and_nothing_of_the_backward():
    gm, forward = step("gpt-tiny")
    report = remat_opt.torch.tag(gm, "min", is_backward, **models.SEARCH)
    tags = {node: node.meta["recompute"] for node in gm.graph.nodes if "recompute" in node.meta}
    assert set(tags) <= forward
    assert CheckpointPolicy.MUST_RECOMPUTE in tags.values()
    assert CheckpointPolicy.MUST_SAVE in tags.values()
    assert report.recomputes > 0 and report.promised_bytes is None
    assert remat_opt.torch.reports() == [report]


def test_the_policy_for_torchtitan_gives_the_graph_back_in_order(monkeypatch):
    import torchtitan_policy

    gm, _ = step("gpt-tiny")
    monkeypatch.setenv("REMAT_OPT_MEMORY", "60%")
    assert torchtitan_policy.remat_policy(gm, config=None) is gm
    (report,) = remat_opt.torch.reports()
    assert report.recomputes > 0 and report.fallback is None
    assert sum("_remat" in node.name for node in gm.graph.nodes) >= report.recomputes


@pytest.mark.parametrize("memory", ["60%", "min"])
def test_a_graph_in_the_order_of_the_plan_keeps_its_promise_and_the_bits(memory):
    (gm, _), (other, _) = step("gpt-tiny"), step("gpt-tiny")
    for node in gm.graph.nodes:
        node.meta["custom"] = node.name
    report = remat_opt.torch.reorder(gm, memory, **models.SEARCH)
    assert report.recomputes > 0 and all("recompute" not in node.meta for node in gm.graph.nodes)
    calls = [node for node in gm.graph.nodes if node.op == "call_function"]
    assert all(node.meta["custom"] == original(node.name) for node in calls)
    values = [torch.randn(one.shape) if one.dtype.is_floating_point else torch.randint(0, 64, one.shape)
              for one in (node.meta["val"] for node in gm.graph.find_nodes(op="placeholder"))]
    mine, theirs = gm(*values), other(*values)
    assert all(torch.equal(a, b) for a, b in zip(mine, theirs, strict=True))
    del mine, theirs
    peaks = [peak_above(lambda run=run: run(*values), "cpu") for run in (gm, other)]
    assert peaks[0] <= report.promised_bytes - report.external_bytes < 0.8 * peaks[1]


def test_without_need_everything_is_saved():
    gm, _ = step("gpt-tiny")
    report = remat_opt.torch.tag(gm, "1TB", is_backward, **models.SEARCH)
    assert report.recomputes == 0
    tags = [node.meta["recompute"] for node in gm.graph.nodes if "recompute" in node.meta]
    assert set(tags) == {CheckpointPolicy.MUST_SAVE}


def test_a_graph_that_cannot_be_planned_names_the_node():
    def branch(x):
        return torch.cond(x.sum() > 0, lambda y: y.sin(), lambda y: y.cos(), (x,))

    gm = torch.fx.experimental.proxy_tensor.make_fx(branch, tracing_mode="fake")(torch.ones(3))
    with pytest.raises(remat_opt.torch.UnsupportedGraph, match="cond"):
        remat_opt.torch.tag(gm, "60%", lambda _: False)
