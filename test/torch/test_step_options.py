"""Clipped and scaled gradients, types, schedulers and checkpoints in whole steps; what would be lost is refused."""

import copy

import models
import pytest
import torch
from models import SEARCH
from remat_opt import UsageError
from remat_opt.torch import TrainStep, UnsupportedGraph
from test_step import Loss, eager, pair, same, small, state_of
from torch import nn, optim
from torch.optim.optimizer import register_optimizer_step_pre_hook

BITS = "same bits"


def clipped(model, args, optimizer, most):
    """An eager step with clipped gradients; gives the loss and their norm."""
    optimizer.zero_grad()
    loss = model(*args)
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), most)
    optimizer.step()
    return loss.detach(), norm


CASES = [
    ("vit-tiny", optim.AdamW, "50%", 0.1),
    ("resnet-tiny", optim.SGD, 0.8, 0.5),
    ("gpt-dropout-tiny", optim.Adam, "min", 1e6),
]


@pytest.mark.parametrize(("name", "kind", "memory", "most"), CASES)
def test_clipped_steps_have_the_bits_of_eager_training(name, kind, memory, most):
    model, args, mine, other, theirs = pair(kind, 0.01, of=models.make(name))
    step = TrainStep(model, args, memory, optimizer=mine, clip_grad_norm=most, **SEARCH)
    assert step.grad_norm is None
    for seed in range(3):
        torch.manual_seed(seed)
        loss = step(*args)
        torch.manual_seed(seed)
        expected, norm = clipped(other, args, theirs, most)
        assert torch.equal(loss, expected) and torch.equal(step.grad_norm, norm)
        assert (norm > most) == (most < 1), "the limit counts in some cases, and does not in others"
    assert step.report.gradients == BITS and step.report.fallback is None
    assert same(model.state_dict(), other.state_dict()) and same(state_of(mine), state_of(theirs))


class Shapes(nn.Module):
    """Has gradients whose layout is not that of their parameters."""

    def __init__(self):
        super().__init__()
        self.one, self.other = nn.Parameter(torch.ones(33, 70)), nn.Parameter(torch.ones(33, 70))
        self.turned, self.scale = nn.Parameter(torch.randn(70, 50)), nn.Parameter(torch.ones(()))
        self.still, self.unused = nn.Parameter(torch.ones(3, 70)), nn.Parameter(torch.ones(3))

    def forward(self, x):
        y = (x + self.one + self.other) * self.scale
        return (y @ self.turned.t().contiguous().t()).square().mean() + self.still.sum()


def test_norms_are_those_of_gradients_in_the_layout_of_parameters():
    torch.manual_seed(0)
    model, args = Shapes(), (torch.randn(33, 70),)
    other = copy.deepcopy(model)
    # The norm is that of all gradients, of those that are not updated, too.
    mine, theirs = (optim.SGD([one.one, one.turned, one.scale], 0.1) for one in (model, other))
    step = TrainStep(model, args, "min", optimizer=mine, clip_grad_norm=0.5, **SEARCH)
    for _ in range(2):
        loss = step(*args)
        assert (loss, step.grad_norm) == clipped(other, args, theirs, 0.5)
        other.zero_grad()
    assert step.report.gradients == BITS
    assert same(model.state_dict(), other.state_dict())


def test_a_step_that_falls_back_clips(monkeypatch):
    from test_step_check import negate_a_gradient, wrong

    model, args, mine, other, theirs = pair()
    wrong(monkeypatch, negate_a_gradient)
    step = TrainStep(model, args, "min", optimizer=mine, clip_grad_norm=0.01, **SEARCH)
    with pytest.warns(UserWarning, match="eager PyTorch makes the steps"):
        loss = step(*args)
    assert (loss, step.grad_norm) == clipped(other, args, theirs, 0.01)
    assert same(model.state_dict(), other.state_dict())


class Half(Loss):
    """Gives a loss of a narrow type."""

    def forward(self, x):
        with torch.autocast("cpu", torch.float16):
            return super().forward(x).half()


@pytest.mark.parametrize("kind", [Loss, Half])
def test_a_scaler_scales_gradients_that_add_up(kind):
    torch.manual_seed(0)
    model, args = kind(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 8)), (torch.randn(16, 6),)
    other = copy.deepcopy(model)
    mine, theirs = (optim.SGD(one.parameters(), 0.1) for one in (model, other))
    scalers = [torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=2) for _ in range(2)]
    step = TrainStep(model, args, "min", scaler=scalers[0], **SEARCH)
    scales = set()
    for number in range(4):
        factor = float("inf") if number == 2 else 1.0  # A step that scalers skip.
        for _ in range(2):
            loss = step(args[0] * factor)
            expected = other(args[0] * factor)
            scalers[1].scale(expected).backward()
            assert torch.equal(loss, expected.detach()) or number == 2
        for one, scaler, optimizer in zip((model, other), scalers, (mine, theirs)):
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(one.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
        assert same(model.state_dict(), other.state_dict())
        assert scalers[0].state_dict() == scalers[1].state_dict()
        scales.add(scalers[0].get_scale())
    assert len(scales) > 1 and step.report.gradients == BITS


@pytest.mark.parametrize("kind", [optim.SGD, optim.AdamW])
def test_parameters_of_bfloat16_have_the_bits_of_eager(kind):
    model, args = small()
    model, args, mine, other, theirs = pair(kind, 0.01, of=(model.bfloat16(), (args[0].bfloat16(),)), weight_decay=0.1)
    step = TrainStep(model, args, "min", optimizer=mine, clip_grad_norm=0.1, **SEARCH)
    for _ in range(3):
        assert (step(*args), step.grad_norm) == clipped(other, args, theirs, 0.1)
    assert step.report.gradients == BITS
    assert same(model.state_dict(), other.state_dict()) and same(state_of(mine), state_of(theirs))


def test_autocast_around_all_steps_does_not_see_old_parameters():
    model, args, mine, other, theirs = pair(optim.AdamW, 0.01, of=models.make("vit-tiny"))
    with torch.autocast("cpu", torch.bfloat16):
        step = TrainStep(model, args, "60%", optimizer=mine, **SEARCH)
        losses = [step(*args) for _ in range(2)]
    for loss in losses:
        with torch.autocast("cpu", torch.bfloat16):
            expected = other(*args)
        theirs.zero_grad()
        expected.backward()
        theirs.step()
        assert torch.equal(loss, expected.detach())
    assert step.report.gradients == BITS
    assert same(model.state_dict(), other.state_dict()) and same(state_of(mine), state_of(theirs))


@pytest.mark.parametrize(
    "schedule",
    [
        lambda one: optim.lr_scheduler.OneCycleLR(one, 0.1, total_steps=6),
        lambda one: optim.lr_scheduler.SequentialLR(
            one,
            [optim.lr_scheduler.LinearLR(one, total_iters=2), optim.lr_scheduler.CosineAnnealingLR(one, 4)],
            milestones=[2],
        ),
    ],
    ids=["one-cycle", "warm-up-and-cosine"],
)
def test_schedulers_change_rates_and_momenta(schedule):
    model, args, mine, other, theirs = pair(momentum=0.9)
    rates = [schedule(one) for one in (mine, theirs)]
    step = TrainStep(model, args, "min", optimizer=mine, **SEARCH)
    for _ in range(4):
        assert torch.equal(step(*args), eager(other, args, theirs))
        for rate in rates:
            rate.step()
    assert step.report.gradients == BITS and step.report.fallback is None
    assert same(model.state_dict(), other.state_dict()) and same(state_of(mine), state_of(theirs))


def test_loaded_states_are_those_of_the_next_step():
    model, args = small()
    optimizer = optim.AdamW(model.parameters(), 0.1, amsgrad=True)
    step = TrainStep(model, args, "min", optimizer=optimizer, **SEARCH)
    step(*args)
    saved = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
    after = [step(*args) for _ in range(2)]
    wanted = copy.deepcopy((model.state_dict(), state_of(optimizer)))
    model.load_state_dict(saved[0])
    optimizer.load_state_dict(copy.deepcopy(saved[1]))
    assert [step(*args) for _ in range(2)] == after
    assert same(model.state_dict(), wanted[0]) and same(state_of(optimizer), wanted[1])
    # Assigned parameters are others than those that the optimizer knows.
    model.load_state_dict(saved[0], assign=True)
    with pytest.raises(UsageError, match="`layers.0.weight` is not among those of the optimizer"):
        step(*args)


def test_what_would_be_lost_is_refused_by_name():
    def refuses(match, model, **options):
        with pytest.raises(UsageError, match=match):
            TrainStep(model, args, "min", **SEARCH, **options)

    model, args = small()
    optimizer = optim.SGD(model.parameters(), 0.1)
    scaler = torch.amp.GradScaler("cpu")
    refuses("GradScaler cannot be part .* with SGD", model, optimizer=optimizer, scaler=scaler)
    refuses("torch.amp.GradScaler, not a float", model, scaler=2.0)
    refuses("clip_grad_norm needs optimizer", model, clip_grad_norm=1.0)
    for norm in (0, -1.0, float("nan"), True, "1"):
        refuses("clip_grad_norm is a positive number", model, optimizer=optimizer, clip_grad_norm=norm)
    for kind in (optim.SGD, optim.Adam):
        refuses(
            f"{kind.__name__} with a tensor as `lr`",
            model,
            optimizer=kind(model.parameters(), torch.tensor(0.1), foreach=False),
        )
    refuses("the model is a DataParallel", nn.DataParallel(model))
    ddp = type("DistributedDataParallel", (Loss,), {"__module__": "torch.nn.parallel.distributed"})
    refuses("module `0` is a DistributedDataParallel", nn.Sequential(ddp(nn.Linear(6, 8))))


def test_hooks_that_come_later_are_refused_by_name():
    model, args = small()
    step = TrainStep(model, args, "min", optimizer=optim.SGD(model.parameters(), 0.1), **SEARCH)
    weight, layer = model.layers[0].weight, model.layers[2]
    for handle, match in (
        (lambda: weight.register_hook(lambda _: None), "hooks of parameter `layers.0.weight`"),
        (lambda: weight.register_post_accumulate_grad_hook(lambda _: None), "hooks of parameter `layers.0.weight`"),
        (lambda: layer.register_full_backward_hook(lambda *_: None), "backward of module `layers.2`"),
        (lambda: model.register_full_backward_pre_hook(lambda *_: None), "backward of the model"),
        (lambda: nn.modules.module.register_module_full_backward_hook(lambda *_: None), "of all modules"),
        (lambda: register_optimizer_step_pre_hook(lambda *_: None), "of all optimizers"),
    ):
        hook = handle()
        with pytest.raises(UsageError, match=match):
            step(*args)
        hook.remove()
    step(*args)


def test_hooks_of_the_forward_are_part_of_the_step():
    model, args = small()
    nn.utils.parametrizations.spectral_norm(model.layers[0])
    model.layers[0].register_forward_hook(lambda module, given, result: result * 2)
    other = copy.deepcopy(model)
    mine, theirs = (optim.SGD(one.parameters(), 0.1) for one in (model, other))
    step = TrainStep(model, args, "min", optimizer=mine, **SEARCH)
    for _ in range(2):
        assert torch.equal(step(*args), eager(other, args, theirs))
    assert step.report.gradients == BITS and step.report.fallback is None
    assert same(model.state_dict(), other.state_dict())


class Writes(Loss):
    """Overwrites its argument."""

    def forward(self, x):
        return super().forward(x.add_(1))


def test_an_argument_that_is_overwritten_cannot_be_planned():
    model = Writes(nn.Linear(6, 8))
    with pytest.raises(UnsupportedGraph, match="overwrites a parameter or an argument"):
        TrainStep(model, (torch.zeros(4, 6),), "min", **SEARCH)
