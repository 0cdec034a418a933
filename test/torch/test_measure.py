"""Time and workspace of ops."""

import pytest
import torch
from remat_opt.torch import _cache, _measure, _measure_child
from remat_opt.torch._graph import Cost
from torch.fx.experimental.proxy_tensor import make_fx


@pytest.fixture(autouse=True)
def _nothing_known(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(_measure, "_known", {})


def traced(function, *inputs):
    return make_fx(function, tracing_mode="fake")(*inputs).graph


def cost(graph, costs, name):
    return costs.by_node[next(node for node in graph.nodes if node.name == name)]


@pytest.mark.measures
def test_time_grows_with_work_and_views_are_free():
    def step(x, y):
        return (x @ x).sum(), (y @ y).t()

    graph = traced(step, torch.randn(32, 32), torch.randn(512, 512))
    costs = _measure.measure(graph)
    assert cost(graph, costs, "mm_1").duration > 20 * cost(graph, costs, "mm").duration > 0
    assert cost(graph, costs, "t").duration == cost(graph, costs, "t").workspace == 0
    assert costs.estimated == {}


def test_what_is_asserted_is_free():
    """It would not hold for made-up arguments."""

    def step(x):
        torch.ops.aten._assert_async.msg((x >= 0).all(), "it is negative")
        return x + 1

    graph = traced(step, torch.ones(8))
    costs = _measure.measure(graph)
    assert cost(graph, costs, "_assert_async") == Cost() and costs.estimated == {}


def test_workspace_is_what_a_kernel_takes_besides_results():
    def step(x):
        return torch.sort(x, dim=0)[0], x + 1

    graph = traced(step, torch.randn(1 << 18))
    costs = _measure.measure(graph)
    assert cost(graph, costs, "add").workspace < 4096
    assert cost(graph, costs, "sort").workspace > 1 << 18


def test_the_same_call_is_measured_once_and_never_again(monkeypatch):
    asked = []
    child = _measure._in_child
    monkeypatch.setattr(_measure, "_in_child", lambda calls: (asked.append(len(calls)), child(calls))[1])
    graph = traced(lambda x: torch.tanh(torch.tanh(x)), torch.randn(64))
    first = _measure.measure(graph)
    assert (first.measured, asked) == (1, [1])
    assert _measure.measure(graph).by_node == first.by_node
    monkeypatch.setattr(_measure, "_known", {})
    assert _measure.measure(graph).by_node == first.by_node
    assert asked == [1]


def test_arguments_survive_the_way_to_the_other_process():
    value = [1, 2.5, None, True, torch.float16, torch.channels_last, torch.strided, torch.device("cpu")]
    assert _measure_child.decode(_measure.encode(value)) == value
    made = _measure_child.decode(_measure.encode(torch.empty(4, 6, dtype=torch.int32).t()))
    assert (made.shape, made.stride(), made.dtype) == ((6, 4), (1, 6), torch.int32)
    assert not made.any()
    broadcast = torch.ones(3, 1).expand(3, 5)
    assert _measure_child.decode(_measure.encode(broadcast)).stride() == (1, 0)


def test_ops_that_only_this_process_knows_are_estimated():
    with torch.library._scoped_library("remat_test", "DEF") as library:
        library.define("double(Tensor x) -> Tensor")
        library.impl("double", lambda x: x * 2, "CompositeExplicitAutograd")
        graph = traced(lambda x: torch.ops.remat_test.double(x) + 1, torch.ones(8))
        costs = _measure.measure(graph)
    assert list(costs.estimated) == ["double"]
    assert cost(graph, costs, "double").duration > 0
    assert costs.measured == 1


@pytest.mark.measures
def test_a_process_that_dies_loses_one_call_only():
    calls = [{"op": "aten.tanh.default", "args": [{"tensor": [[8], [1], "float32", "cpu"]}], "kwargs": {}}] * 2
    # It reads far behind its memory.
    broken = {"op": "aten.as_strided_copy.default", "args": [calls[0]["args"][0], [4], [1 << 40]], "kwargs": {}}
    answers = _measure._in_child([calls[0], broken, calls[1]])
    assert isinstance(answers[1], str)
    assert all(isinstance(one, list) for one in (answers[0], answers[2]))


@pytest.mark.measures
def test_without_a_process_everything_is_estimated(monkeypatch):
    monkeypatch.setattr(_measure.sys, "executable", "/nonexistent/python")
    graph = traced(lambda x: torch.tanh(x), torch.ones(8))
    costs = _measure.measure(graph)
    assert costs.measured == 0
    assert "no process measures" in costs.estimated["tanh"]


def test_a_damaged_cache_is_none(tmp_path):
    _cache.store("plans", "key", {"a": 1})
    assert _cache.load("plans", "key") == {"a": 1}
    (tmp_path / "remat-opt" / "torch" / "plans" / "key.json").write_text("{")
    assert _cache.load("plans", "key") is None
