"""Planned modules have the bits of the model, take what was promised, and fall back where nothing was planned."""

import copy
import warnings

import models
import pytest
import torch
import whole
from models import SEARCH
from remat_opt import UsageError
from remat_opt.torch import UnsupportedGraph, checkpoint, checkpoint_report
from torch import nn


@pytest.mark.parametrize(("name", "memory"), [("gpt-dropout-tiny", "60%"), ("unet-tiny", "min")])
def test_a_planned_module_has_the_bits_of_the_model(name, memory):
    model, args = models.make(name)
    other = copy.deepcopy(model)
    planned = checkpoint(model, args, memory, **SEARCH)
    assert checkpoint_report(planned) is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for seed in range(2):
            losses = []
            for one in (planned, other):
                torch.manual_seed(seed)
                loss = one(*args)
                loss.backward()
                losses.append(loss.detach())
            assert torch.equal(*losses)
    report = checkpoint_report(planned)
    assert report.recomputes > 0 and report.promised_bytes < report.baseline_bytes
    assert all(torch.equal(a.grad, b.grad) for a, b in zip(model.parameters(), other.parameters()))
    assert all(torch.equal(a, b) for a, b in zip(model.buffers(), other.buffers()))


def test_a_planned_module_takes_what_was_promised():
    found = whole.measure("vit-tiny", "checkpoint", "60%", **SEARCH)
    assert 0.97 * found["promised"] <= found["peak"] <= found["promised"]


class Heads(nn.Module):
    """Gives a dictionary; its input may need a gradient."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.Tanh(), nn.Dropout(0.5))
        self.heads = nn.ModuleDict({"a": nn.Linear(32, 4), "b": nn.Linear(32, 2)})
        self.seen = []

    def forward(self, x, *, scale=1.0):
        self.seen.append(self.training)
        return {name: scale * head(self.body(x)) for name, head in self.heads.items()}


@pytest.fixture
def heads():
    torch.manual_seed(0)
    model, x = Heads(), torch.randn(16, 8)
    return model, checkpoint(model, (x,), "min", **SEARCH), x


def test_it_has_the_parts_of_the_model(heads):
    model, planned, _ = heads
    assert type(planned) is Heads and planned is not model
    assert list(planned.state_dict()) == list(model.state_dict())
    assert all(a is b for a, b in zip(planned.parameters(), model.parameters()))
    assert planned.body is model.body


def test_results_of_any_structure_and_gradients_of_inputs(heads):
    model, _, x = heads
    x.requires_grad_()
    planned, other = checkpoint(model, (x,), "min", **SEARCH), copy.deepcopy(model)
    found = []
    for one in (planned, other):
        torch.manual_seed(3)
        outputs = one(x)
        (outputs["a"].sum() + outputs["b"].square().sum()).backward()
        found.append((*outputs.values(), x.grad.clone(), one.body[0].weight.grad.clone()))
        x.grad = None
    assert all(torch.equal(a, b) for a, b in zip(*found))


def test_hooks_of_the_module_run_once(heads):
    model, _, x = heads
    calls = []
    model.register_forward_hook(lambda *_: calls.append(1))
    planned = checkpoint(model, (x,), "min", **SEARCH)
    for _ in range(2):
        planned(x)
    assert len(calls) == 2
    with torch.no_grad():
        planned(x)
    assert len(calls) == 3


def test_what_was_not_planned_runs_as_the_model_is(heads):
    model, planned, x = heads
    planned(x)
    traced = len(model.seen)
    planned(x)
    assert len(model.seen) == traced, "the plan runs without the model"
    with pytest.warns(UserWarning, match="the inputs are another one"):
        planned(x[:4])
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # Once is enough.
        planned(x, scale=2.0)
        planned.eval()
        assert torch.equal(planned(x)["a"], model.eval()(x)["a"])
        assert model.seen[-2:] == [False, False]
        planned.train()
        with torch.no_grad():
            planned(x)
    assert len(model.seen) == traced + 5


def test_frozen_parameters_are_another_plan(heads):
    model, planned, x = heads
    model.body[0].requires_grad_(False)
    with pytest.warns(UserWarning, match="what requires gradients is another one"):
        planned(x)["a"].sum().backward()
    assert model.body[0].weight.grad is None and model.heads["a"].weight.grad is not None


def test_wrong_budgets_and_models_are_rejected(heads):
    model, _, x = heads
    with pytest.raises(UsageError):
        checkpoint(model, (x,), "much")

    class Branches(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(8))

        def forward(self, x):
            return torch.cond(x.sum() > 0, lambda y: y * 2, lambda y: y * 3, (x * self.weight,))

    planned = checkpoint(Branches(), (x,), "min", **SEARCH)
    with pytest.raises(UnsupportedGraph, match="runs a graph inside the graph"):
        planned(x).sum().backward()


def test_attention_without_dropout_is_not_run_twice_for_nothing():
    class Attends(nn.Module):
        def __init__(self):
            super().__init__()
            self.before = nn.Linear(8, 8)

        def forward(self, x):
            return nn.functional.scaled_dot_product_attention(*[self.before(x)] * 3).square().mean()

    model, x, runs = Attends(), torch.randn(2, 2, 16, 8), []
    for one in (model, checkpoint(model, (x,), "100%", **SEARCH)):
        one(x).backward()
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            one(x).backward()
        names = [event.name() for event in profile.profiler.kineto_results.events()]
        runs.append(names.count("aten::_scaled_dot_product_flash_attention_for_cpu"))
    assert runs == [1, 1]
