"""Training graphs as problems, plans as graphs."""

import operator
import random

import pytest
import remat_opt
import torch
from models import SEARCH
from remat_opt.torch import UnsupportedGraph
from remat_opt.torch._dropout import split_dropout
from remat_opt.torch._effects import is_once, is_random
from remat_opt.torch._emit import PlanMismatch, drop_unused, emit
from remat_opt.torch._graph import Cost, TrainingGraph
from torch import fx
from torch.fx.experimental.proxy_tensor import make_fx


def traced(function, *inputs, mode="fake"):
    gm = make_fx(function, tracing_mode=mode)(*inputs)
    gm.graph.eliminate_dead_code()
    return gm


def planned(gm, workspace=0):
    """The problem of a traced function, with costs by size."""
    output = next(iter(gm.graph.find_nodes(op="output")))
    outputs = torch.utils._pytree.tree_leaves(output.args)
    costs = {node: Cost(1000 + 7 * index, workspace) for index, node in enumerate(gm.graph.nodes)}
    return TrainingGraph(gm.graph, outputs, costs), outputs


def run_planned(gm, plan, graph, outputs, inputs):
    emitted = emit(graph, plan)
    emitted.graph.output(tuple(emitted.at_end[one] if isinstance(one, fx.Node) else one for one in outputs))
    drop_unused(emitted.graph)
    emitted.graph.lint()
    return fx.Interpreter(fx.GraphModule(gm, emitted.graph)).run(*inputs)


def ops(graph):
    return {one["name"]: one for one in graph.document["ops"]}


def forbidden(graph):
    names = [one["name"] for one in graph.document["ops"]]
    return {(names[one["before"]], names[one["after"]]) for one in graph.document["anti_dependences"]}


def chain(x, w, depth=8):
    for _ in range(depth):
        x = torch.tanh(x @ w)
    return x


def test_tensors_at_once_are_counted_by_their_last_readers():
    gm = traced(lambda x, w: (chain(x, w, 3).square(), x + 1), torch.randn(4, 4), torch.randn(4, 4))
    graph, _ = planned(gm)
    names = [one["name"] for one in graph.document["ops"]]
    # While the chain runs, a product and what is made of it; at the end the two results, and one more for each.
    assert graph.tensors_at_once() == graph.tensors_at_once(names) == 4
    # The sum first: it lies there from the beginning.
    assert graph.tensors_at_once([names[-1], *names[:-1]]) == 5
    # A result stays from its first run on; others are there once more.
    assert graph.tensors_at_once([*names, *names]) == 6


@pytest.mark.parametrize("budget", ["none", "80%", "60%", "min"])
def test_plans_compute_the_same_bits(budget):
    def step(x, w):
        loss = chain(x, w).square().sum()
        return torch.autograd.grad(loss, (w,))

    inputs = (torch.randn(64, 64), torch.randn(64, 64).requires_grad_())
    gm = traced(step, *inputs)
    graph, outputs = planned(gm)
    plan = remat_opt.solve(graph.problem(), budget, order="free", accounting="runtime", **SEARCH, solver="search")
    with torch.no_grad():
        expected = gm(*inputs)
        got = run_planned(gm, plan, graph, outputs, inputs)
    assert all(torch.equal(one, two) for one, two in zip(expected, got))


@pytest.mark.parametrize("seed", range(6))
def test_random_steps_with_updates_in_place_keep_their_results(seed):
    """Parameters, statistics and intermediate results are overwritten amid a step; whatever the order of the plan, each
    op reads what it reads in the order of the program."""
    choose = random.Random(seed)
    kinds = [choose.choice(["tanh", "mul", "add_", "view", "copy_", "inner_", "split"]) for _ in range(12)]
    picks = [(choose.randrange(1 << 16), choose.randrange(1 << 16)) for _ in kinds]

    def step(a, b, c):
        state, values = [a, b, c], [a * 1.5, b + c]
        for kind, (one, two) in zip(kinds, picks):
            x, s = values[one % len(values)], state[two % 3]
            if kind == "tanh":
                values.append(torch.tanh(x) * s)
            elif kind == "mul":
                values.append(x * values[two % len(values)])
            elif kind == "add_":
                s.add_(x, alpha=0.1)
            elif kind == "copy_":
                s.copy_(s * 0.5 + x)
            elif kind == "view":
                values.append(s.t().t() + x)
            elif kind == "split":
                left, right = s.split(8)
                values.append(torch.cat([right, left]) - x)
            else:
                fresh = x * 2
                seen = fresh + 1
                fresh.add_(s)
                values.append(fresh * seen)
        return tuple(values[-3:])

    inputs = [torch.randn(16, 16) for _ in range(3)]
    gm = traced(step, *inputs)
    graph, outputs = planned(gm)
    expected_state, state = [one.clone() for one in inputs], [one.clone() for one in inputs]
    expected = gm(*expected_state)
    for budget in ("none", "min"):
        state = [one.clone() for one in inputs]
        plan = remat_opt.solve(graph.problem(), budget, order="free", accounting="runtime", **SEARCH, seed=seed)
        got = run_planned(gm, plan, graph, outputs, state)
        assert all(torch.equal(one, two) for one, two in zip(expected, got))
        assert all(torch.equal(one, two) for one, two in zip(expected_state, state))


def test_readers_never_run_after_what_they_read_is_overwritten():
    def step(w, g):
        used = w * 3
        w.add_(g)
        return used, w * 2

    graph, _ = planned(traced(step, torch.ones(4), torch.ones(4)))
    names = list(ops(graph))
    assert forbidden(graph) == {(names[0], names[1])}
    update, late = ops(graph)[names[1]], ops(graph)[names[2]]
    assert not update["recomputable"]
    assert set(update["defines"]) & set(late["reads"])


def test_random_ops_run_once_in_their_order():
    def step(x):
        return x * torch.rand_like(x) + torch.rand_like(x)

    gm = traced(step, torch.ones(8))
    graph, _ = planned(gm)
    first, second = (one for name, one in ops(graph).items() if "rand_like" in name)
    assert not first["recomputable"] and not second["recomputable"]
    assert set(first["defines"]) & set(second["reads"])


def test_dropout_that_drops_nothing_is_not_random():
    def step(q):
        return torch.nn.functional.scaled_dot_product_attention(q, q, q, dropout_p=0.0)

    gm = traced(step, torch.randn(1, 2, 8, 4))
    assert not any(is_once(node) for node in gm.graph.nodes if node.op == "call_function")


def test_views_and_parts_share_the_memory_of_their_tensor():
    def step(x):
        y = x + 1
        left, right = y.split(2)
        return left.t() * right.t()

    graph, _ = planned(traced(step, torch.ones(4, 2)))
    storages = {one["name"]: one["storage"] for one in graph.document["tensors"]}
    views = [name for name in storages if name.split("#")[0] in ("split", "t", "t_1")]
    assert len(views) == 4
    assert {storages[name] for name in views} == {storages["add"]}
    assert all(ops(graph)[name]["duration"] == 0 for name in ("split", "t", "t_1"))


def test_a_batch_norm_runs_again_without_its_statistics():
    norm = torch.nn.BatchNorm2d(3)

    def step(x, w, b, mean, var):
        y, m, v, new_mean, new_var = torch.ops.aten._native_batch_norm_legit_functional(
            x * 2, w, b, mean, var, True, 0.1, 1e-5
        )
        mean.copy_(new_mean)
        var.copy_(new_var)
        return y.sum(), m, v

    inputs = [torch.randn(2, 3, 4, 4), norm.weight.detach(), norm.bias.detach(), torch.zeros(3), torch.ones(3)]
    gm = traced(step, *inputs)
    graph, outputs = planned(gm)
    assert forbidden(graph) == set()
    name = next(one for one in ops(graph) if "batch_norm" in one)
    steps = [{"op": "compute", "node": one} for one in ops(graph)]
    steps.insert(-1, {"op": "recompute", "node": name})
    expected_state, state = [one.clone() for one in inputs], [one.clone() for one in inputs]
    expected = gm(*expected_state)
    got = run_planned(gm, {"steps": steps}, graph, outputs, state)
    assert all(torch.equal(one, two) for one, two in zip([*expected, *expected_state], [*got, *state]))


def test_clones_have_traced_values_of_their_own():
    gm = traced(lambda x: (torch.tanh(x).sum(),), torch.ones(8))
    graph, _ = planned(gm)
    first, *rest = ops(graph)
    emitted = emit(graph, {"steps": [{"op": "compute", "node": one} for one in (first, first, *rest)]})
    one, two = (node for node in emitted.graph.nodes if node.target is torch.ops.aten.tanh.default)
    assert one.meta["val"].untyped_storage()._cdata != two.meta["val"].untyped_storage()._cdata


def test_a_plan_that_leaves_out_an_op_is_refused():
    graph, _ = planned(traced(lambda x: torch.tanh(x) + 1, torch.ones(8)))
    with pytest.raises(PlanMismatch, match="add"):
        emit(graph, {"steps": [{"op": "compute", "node": "tanh"}]})


def test_symbolic_shapes_are_refused_by_name():
    gm = traced(lambda x: torch.tanh(x), torch.ones(8, 3), mode="symbolic")
    with pytest.raises(UnsupportedGraph, match="dynamic shapes") as error:
        planned(gm)
    assert error.value.op is not None


def test_graphs_inside_graphs_are_refused_by_name():
    def step(x):
        return torch.cond(x.sum() > 0, lambda y: y + 1, lambda y: y - 1, (x,))

    gm = traced(step, torch.ones(8))
    with pytest.raises(UnsupportedGraph, match="cond") as error:
        planned(gm)
    assert error.value.op == "cond"


def test_calls_of_modules_are_refused():
    gm = fx.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(2, 2)))
    with pytest.raises(UnsupportedGraph, match="ATen"):
        TrainingGraph(gm.graph, [], {})


def test_parts_that_nobody_reads_are_dropped():
    gm = traced(lambda x: x.split(2)[0] * 1, torch.ones(4))
    graph = gm.graph
    split = next(node for node in graph.nodes if "split" in node.name)
    with graph.inserting_after(split):
        extra = graph.call_function(operator.getitem, (split, 1))
    extra.meta["val"] = split.meta["val"][1]
    drop_unused(graph)
    assert extra not in graph.nodes


@pytest.mark.parametrize("share", [0.1, 0.37, 0.5])
def test_dropout_in_two_ops_has_the_same_bits(share):
    def step(x):
        y, mask = torch.ops.aten.native_dropout(torch.tanh(x), share, True)
        return y + 1, mask, torch.rand(3)

    x = torch.randn(5, 37)
    gm = traced(step, x)
    torch.manual_seed(1)
    expected = gm(x)
    assert split_dropout(gm.graph) == 1
    gm.graph.lint()
    gm.recompile()
    torch.manual_seed(1)
    assert all(torch.equal(one, two) for one, two in zip(expected, gm(x)))
    drawn = [node.name for node in gm.graph.nodes if node.op == "call_function" and is_random(node)]
    assert len(drawn) == 2
    graph, _ = planned(gm)
    assert [name for name, op in ops(graph).items() if not op.get("recomputable", True)] == drawn


@pytest.mark.parametrize("x", [torch.randn(4, 4, dtype=torch.bfloat16), torch.randn(4, 6).t()])
def test_dropout_whose_bits_could_change_stays_whole(x):
    gm = traced(lambda x: torch.ops.aten.native_dropout(x, 0.1, True)[0] + 1, x)
    assert split_dropout(gm.graph) == 0
