"""Captured graphs are problems that solvers take, with the names of the model."""

import json
import pathlib

import graphs
import models
import pytest
import torch
from models import SEARCH
from remat_opt import ModelError, Problem, solve
from remat_opt.torch import capture, inductor_problem
from torch import nn, optim


def baseline(problem):
    """The plan that runs every op once, in order."""
    return solve(problem, "none", order="fixed", **SEARCH, solver="search")


def anti(document):
    """The pairs of names of what stands before and after."""
    names = [op["name"] for op in document["ops"]]
    return {(names[pair["before"]], names[pair["after"]]) for pair in document["anti_dependences"]}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.norm = nn.Linear(8, 64), nn.BatchNorm1d(64)

    def forward(self, x):
        return self.norm(self.layer(x).relu()).square().mean()


@pytest.fixture
def small():
    torch.manual_seed(0)
    return Model(), (torch.randn(32, 8),)


def test_tensors_from_outside_have_the_names_of_the_model(small):
    model, args = small
    document = capture(model, args, optim.SGD(model.parameters(), 0.1, momentum=0.9), name="mine").document
    assert document["name"] == "mine"
    outside = {tensor["name"]: tensor["storage"] for tensor in document["tensors"] if "producer" not in tensor}
    sizes = {name: document["storages"][storage]["bytes"] for name, storage in outside.items()}
    assert sizes["layer.weight"] == sizes["state 0 of layer.weight"] == 8 * 64 * 4
    assert sizes["input 0"] == 32 * 8 * 4
    assert {"norm.running_mean", "norm.num_batches_tracked", "numbers of norm.bias"} <= set(sizes)
    assert all(document["storages"][storage]["role"] == "external" for storage in outside.values())


def test_what_reads_a_parameter_stands_before_its_update(small):
    model, args = small
    document = capture(model, args, optim.SGD(model.parameters(), 0.1)).document
    updates = [op for op in document["ops"] if op["name"].startswith("update_")]
    parameters = [name.replace(".", "_") for name, _ in model.named_parameters()]
    assert [op["name"] for op in updates] == [f"update_{name}" for name in parameters]
    assert not any(op["recomputable"] for op in updates)
    assert all(op["duration"] > 0 for op in updates)
    pairs = anti(document)
    reads = [name for name, after in pairs if after == "update_layer_weight"]
    assert any(name.startswith(("addmm", "t")) for name in reads)
    assert solve(capture(model, args, optim.SGD(model.parameters(), 0.1)), "min", **SEARCH, solver="search").steps


def test_without_an_optimizer_gradients_stay(small):
    model, args = small
    document = capture(model, args).document
    kept = sorted(one["bytes"] for one in document["storages"] if one["role"] == "live-out")
    assert kept[-1] == 8 * 64 * 4
    assert not any(op["name"].startswith("update_") for op in document["ops"])


def test_a_cut_separates_forward_and_backward(small):
    model, args = small
    optimizer = optim.Adam(model.parameters())
    whole, split = capture(model, args, optimizer), capture(model, args, optimizer, cut=True)
    names = [op["name"] for op in split.document["ops"]]
    assert "__cut__" in names and "__cut__" not in [op["name"] for op in whole.document["ops"]]
    assert names.index("__cut__") < min(index for index, name in enumerate(names) if "backward" in name)
    assert names.index("__cut__") < min(index for index, name in enumerate(names) if name.startswith("update_"))
    assert abs(baseline(split).peak_bytes - baseline(whole).peak_bytes) < 1000


def test_estimated_durations_are_the_same_every_time(small):
    model, args = small
    first, second = (capture(model, args, durations="estimated").document for _ in range(2))
    assert [op["duration"] for op in first["ops"]] == [op["duration"] for op in second["ops"]]
    measured = capture(model, args).document
    assert [op["name"] for op in measured["ops"]] == [op["name"] for op in first["ops"]]


def test_the_peak_of_a_captured_step_is_that_of_its_plan():
    model, args = models.make("vit-tiny")
    problem = capture(model, args, optim.AdamW(model.parameters()))
    plan = baseline(problem)
    half = solve(problem, "50%", order="free", **SEARCH, solver="search")
    assert half.peak_bytes <= plan.peak_bytes // 2
    assert half.duration < 1.5 * plan.duration


@pytest.mark.parametrize("name", graphs.OPTIMIZERS)
def test_the_graphs_of_the_project_are_as_documented(name):
    path = graphs.FOLDER / f"{name}.json"
    assert path.stat().st_size < 300_000
    problem = Problem.load(path)
    assert problem.document["name"] == name
    ops = {op["name"]: op for op in problem.document["ops"]}
    model, _ = models.make(name)
    parameters = {f"update_{one.replace('.', '_')}" for one, _ in model.named_parameters()}
    assert {one for one in ops if one.startswith("update_")} == parameters
    assert all(op["workspace"] % graphs.UNIT == 0 for one, op in ops.items() if one not in parameters)
    plan = solve(problem, "60%", order="free", **SEARCH, solver="search")
    assert plan.peak_bytes <= 0.6 * plan["baseline_peak_bytes"]


def graph_of_inductor(tmp_path, **changes):
    """A graph in Inductor's form: an input that may be freed, an op with two results, fused ops, an output."""

    def buffer(name, size, deps=(), **more):
        return {
            "name": name,
            "size_alloc": size,
            "size_free": size,
            "size": size,
            "is_input": False,
            "is_output": False,
            "deps": list(deps),
            "unmet_deps": [one for one in deps if one != "arg0"],
        } | more

    document = {
        "nodes": [
            {"name": "op0", "buffer_names": ["buf0"]},
            {"name": "op1", "buffer_names": ["buf1"]},
            {"name": "op2", "buffer_names": ["buf2"]},
            {"name": "op3_op4", "buffer_names": ["buf3", "buf4"]},
        ],
        "buffers": [
            buffer("tangents", 64, is_input=True),
            buffer("buf0", 0, ["tangents", "arg0"], size_alloc=300),
            buffer("buf1", 100, ["buf0"], size_alloc=0),
            buffer("buf2", 200, ["buf0"], size_alloc=0),
            buffer("buf3", 400, ["buf1", "tangents"]),
            buffer("buf4", 50, ["buf3", "buf2"], is_output=True),
        ],
    } | changes
    path = tmp_path / "model__0_backward_1_fused.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_graphs_of_inductor_are_problems(tmp_path):
    problem = inductor_problem(graph_of_inductor(tmp_path))
    assert problem.document["name"] == "model__0_backward_1_fused"
    assert [op["name"] for op in problem.document["ops"]] == ["__inputs__", "op0", "op1", "op2", "op3_op4"]
    # Inputs 64, results of the first op 300, then the fused op with 450 on top.
    plan = baseline(problem)
    assert plan.peak_bytes == 64 + 300 + 450
    assert [op["duration"] for op in problem.document["ops"]] == [0, 364, 100, 200, 64 + 300 + 450]
    assert [one["bytes"] for one in problem.document["storages"] if one["role"] == "live-out"] == [50]


def test_graphs_of_other_forms_are_rejected(tmp_path):
    for changes in ({"buffers": [{}]}, {"nodes": None}, {"buffers": 3}):
        with pytest.raises(ModelError, match="no graph of Inductor"):
            inductor_problem(graph_of_inductor(tmp_path, **changes))
    path = pathlib.Path(tmp_path, "text.json")
    path.write_text("no JSON", encoding="utf-8")
    with pytest.raises(ModelError, match="no graph of Inductor"):
        inductor_problem(path)


def test_a_model_without_numbers_has_the_same_ops():
    def ops(device):
        torch.manual_seed(0)
        with torch.device(device):
            model, inputs = models.Language(32, 1, 2, 16, 32), [torch.zeros(2, 16, dtype=torch.int64)] * 2
        problem = capture(model, inputs, torch.optim.SGD(model.parameters(), lr=0.1), durations="estimated")
        return [(one["name"], one["duration"]) for one in problem.document["ops"]]

    found = ops("meta")
    assert found == ops("cpu")
    assert any("nll_loss_backward" in name for name, _ in found)
