"""A planned step that differs from eager PyTorch is found in its first step, and eager PyTorch goes on."""

import copy
import random
import warnings

import pytest
import torch
from models import SEARCH
from remat_opt.torch import TrainStep, _step, _step_check
from remat_opt.torch._eager import Eager
from remat_opt.torch._optimizer import Updates
from remat_opt.torch._state import State, digest
from remat_opt.torch._update import UPDATE
from test_step import Loss, eager, pair, same, small, state_of
from torch import nn, optim
from torch._subclasses.functional_tensor import FunctionalTensor


def wrong(monkeypatch, change):
    """Lets plans become other graphs than planned."""
    right = _step._module

    def module(step, plan, outputs):
        made = right(step, plan, outputs)
        change(made.graph)
        made.recompile()
        return made

    monkeypatch.setattr(_step, "_module", module)


def negate_a_gradient(graph):
    *_, last = graph.find_nodes(op="call_function", target=torch.ops.aten.mm.default)
    with graph.inserting_after(last):
        other = graph.call_function(torch.ops.aten.neg.default, (last,))
    last.replace_all_uses_with(other, delete_user_cb=lambda user: user is not other)


def fail(graph):
    *_, last = graph.find_nodes(op="call_function", target=torch.ops.aten.mm.default)
    last.target = torch.ops.aten.bmm.default


def test_a_right_step_passes_and_says_what_it_took():
    model, args, mine, _, _ = pair(momentum=0.9)
    step = TrainStep(model, args, "min", optimizer=mine, **SEARCH)
    assert step.report.gradients == "unchecked" and step.report.check_bytes is None
    kept = model.layers[0].weight.grad = torch.ones_like(model.layers[0].weight)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        step(*args)
    assert step.report.gradients == "same bits" and step.report.fallback is None
    changed = 2 * sum(4 * one.numel() for one in model.parameters())
    assert step.report.check_bytes >= step.report.baseline_bytes + changed
    assert step.report.check_bytes > step.report.promised_bytes
    assert "the first step, compared with eager PyTorch" in str(step.report)
    assert model.layers[0].weight.grad is kept and torch.equal(kept, torch.ones_like(kept))


@pytest.mark.parametrize(("change", "reason"), [(negate_a_gradient, "differs bitwise from eager"), (fail, "failed")])
@pytest.mark.parametrize(("kind", "options"), [(optim.SGD, {"momentum": 0.9, "dampening": 0.5}), (optim.Adam, {})])
def test_a_wrong_step_is_found_and_eager_goes_on(monkeypatch, change, reason, kind, options):
    model, args, mine, other, theirs = pair(kind, **options)
    wrong(monkeypatch, change)
    step = TrainStep(model, args, "min", optimizer=mine, **SEARCH)
    with pytest.warns(UserWarning, match=reason) as warned:
        assert torch.equal(step(*args), eager(other, args, theirs))
    assert len(warned) == 1 and warned[0].filename == __file__
    assert reason in step.report.fallback and step.report.promised_bytes is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            assert torch.equal(step(*args), eager(other, args, theirs))
    assert same(model.state_dict(), other.state_dict())
    assert same(state_of(mine), state_of(theirs))


def test_without_a_check_nothing_is_found(monkeypatch):
    model, args, mine, other, theirs = pair()
    wrong(monkeypatch, negate_a_gradient)
    step = TrainStep(model, args, "min", optimizer=mine, **SEARCH, check=False)
    assert torch.equal(step(*args), eager(other, args, theirs))
    assert step.report.fallback is None and step.report.gradients == "unchecked"
    assert not same(model.state_dict(), other.state_dict())


def test_strict_raises_each_time_and_leaves_the_state(monkeypatch):
    model, args, mine, _, _ = pair(optim.Adam)
    wrong(monkeypatch, negate_a_gradient)
    step = TrainStep(model, args, "min", optimizer=mine, **SEARCH, strict=True)
    before = copy.deepcopy((model.state_dict(), state_of(mine)))
    drawn = torch.get_rng_state()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="differs bitwise from eager PyTorch"):
            step(*args)
    assert same(model.state_dict(), before[0]) and same(state_of(mine), before[1])
    assert torch.equal(drawn, torch.get_rng_state())


def read_too_late(graph):
    """Lets a gradient read a parameter after its update, which stands last."""
    update = graph.find_nodes(op="call_function", target=UPDATE)[0]
    parameter = update.args[0]
    (output,) = graph.find_nodes(op="output")
    later = [one for one in graph.find_nodes(op="call_function", target=UPDATE) if one is not update]
    with graph.inserting_after(update):
        zero = graph.call_function(torch.ops.aten.mul.Scalar, (parameter, 0.0))
        sums = graph.call_function(torch.ops.aten.sum.default, (zero,))
    for one in later:
        one.prepend(zero)
        one.prepend(sums)
        with graph.inserting_before(one):
            moved = graph.call_function(torch.ops.aten.add.Tensor, (one.args[1], sums))
        changed = one.args[1]
        one.update_arg(1, moved)
        if len(output.args[0]) > 1:
            output.replace_input_with(changed, moved)
        break


@pytest.mark.parametrize("rate", [0.0, 0.1])
def test_a_parameter_that_is_read_after_its_update_is_found_at_any_rate(monkeypatch, rate):
    """What is read changes no bit here, however large the rate is; it would with other numbers."""
    model, args, _, other, _ = pair()
    mine, theirs = (optim.SGD(one.parameters(), rate) for one in (model, other))
    wrong(monkeypatch, read_too_late)
    step = TrainStep(model, args, "min", optimizer=mine, **SEARCH)
    with pytest.warns(UserWarning, match="gradient differs bitwise from eager PyTorch"):
        assert torch.equal(step(*args), eager(other, args, theirs))
    assert step.report.gradients == "wrong" and step.report.promised_bytes is None
    assert same(model.state_dict(), other.state_dict())


def test_a_wrong_gradient_is_found_at_a_rate_of_0(monkeypatch):
    model, args, _, other, _ = pair()
    mine, theirs = (optim.SGD(one.parameters(), 0.0) for one in (model, other))
    wrong(monkeypatch, negate_a_gradient)
    step = TrainStep(model, args, "min", optimizer=mine, **SEARCH)
    with pytest.warns(UserWarning, match="gradient differs bitwise from eager PyTorch"):
        step(*args)
    eager(other, args, theirs)
    for one in (mine, theirs):
        one.param_groups[0]["lr"] = 0.1
    for _ in range(2):
        assert torch.equal(step(*args), eager(other, args, theirs))
    assert same(model.state_dict(), other.state_dict())


def test_gradients_that_add_up_are_checked(monkeypatch):
    model, args, _, other, _ = pair()
    wrong(monkeypatch, negate_a_gradient)
    for one in (model, other):
        one.layers[0].bias.grad = torch.ones(32)
    step = TrainStep(model, args, "min", **SEARCH)
    with pytest.warns(UserWarning, match="gradient of `layers"):
        step(*args)
    step(*args)
    for _ in range(2):
        other(*args).backward()
    assert all(torch.equal(a.grad, b.grad) for a, b in zip(model.parameters(), other.parameters()))


class Replaces(Loss):
    """Puts another tensor in the place of its buffer."""

    def __init__(self):
        super().__init__(nn.Linear(6, 8))
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x):
        self.seen = self.seen + x.detach().mean()
        return super().forward(x)


def test_a_buffer_that_is_replaced_stays_the_same_tensor():
    torch.manual_seed(0)
    model, args, mine, other, theirs = pair(of=(Replaces(), (torch.randn(4, 6),)))
    step, seen = TrainStep(model, args, "min", optimizer=mine, **SEARCH), model.seen
    for _ in range(2):
        assert torch.equal(step(*args), eager(other, args, theirs))
    assert step.report.gradients == "same bits" and model.seen is seen
    assert same(model.state_dict(), other.state_dict())


class Draws(Loss):
    """Draws from Python's random numbers, which become part of a graph."""

    def forward(self, x):
        return super().forward(x * random.random())


def test_numbers_of_other_generators_are_found_and_put_back():
    model, args, mine, other, theirs = pair(of=(Draws(nn.Linear(6, 8)), (torch.randn(4, 6),)))
    step = TrainStep(model, args, "min", optimizer=mine, **SEARCH)
    random.seed(0)
    with pytest.warns(UserWarning, match="differs bitwise"):
        step(*args)
    random.seed(0)
    eager(other, args, theirs)
    assert same(model.state_dict(), other.state_dict())


class Varies(Loss):
    """Gives something else in each run, and something else when it is traced."""

    def __init__(self, runs, traced):
        super().__init__(nn.Linear(6, 8))
        self.count, self.runs, self.traced = 0, runs, traced

    def forward(self, x):
        is_traced = isinstance(x, FunctionalTensor)
        self.count += not is_traced
        return super().forward(x * (1 + self.traced if is_traced else 1 + self.count * self.runs))


@pytest.mark.parametrize(
    ("runs", "traced", "note"),
    [(1e-6, 0.0, "differs bitwise from run to run"), (0.0, 1e-6, "that PyTorch traces"), (0.1, 0.0, None), (0.0, 0.1, None)],
)
def test_other_bits_of_the_model_itself_pass_up_to_rounding(runs, traced, note):
    torch.manual_seed(0)
    model, args = Varies(runs, traced), (torch.randn(4, 6),)
    start = copy.deepcopy(model.state_dict())
    optimizer = optim.Adam(model.parameters(), 0.1)
    step = TrainStep(model, args, "min", optimizer=optimizer, **SEARCH)
    if note is None:
        with pytest.warns(UserWarning, match="differs bitwise"):
            step(*args)
        assert step.report.gradients == "wrong" and step.report.gradient_error > 1
    else:
        step(*args)
        assert step.report.gradients == "close" and 0 < step.report.gradient_error < 1
        assert note in step.report.notes[-1] and step.report.fallback is None
    # One step was made, not several.
    assert float(optimizer.state_dict()["state"][0]["step"]) == 1
    moved = model.state_dict()["layers.0.weight"] - start["layers.0.weight"]
    assert torch.allclose(moved.abs(), torch.full_like(moved, 0.1), rtol=1e-3)


def test_what_does_not_fit_is_not_compared(monkeypatch):
    model, args, mine, other, theirs = pair(momentum=0.9)
    step = TrainStep(model, args, "min", optimizer=mine, **SEARCH)
    monkeypatch.setattr(_step_check, "free_bytes", lambda device: 0)
    assert torch.equal(step(*args), eager(other, args, theirs))
    assert step.report.gradients == "unchecked" and "are free" in step.report.notes[-1]
    assert step.report.check_bytes is None and step.report.fallback is None
    assert same(model.state_dict(), other.state_dict())


def test_what_runs_out_of_memory_is_not_compared(monkeypatch):
    model, args, mine, other, theirs = pair(momentum=0.9)
    step = TrainStep(model, args, "min", optimizer=mine, **SEARCH)
    whole = Eager.step

    def fails(self, args):
        whole(self, args)
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 6291456 bytes.")

    monkeypatch.setattr(Eager, "step", fails)
    assert torch.equal(step(*args), eager(other, args, theirs))
    assert "does not fit into memory" in step.report.notes[-1] and step.report.fallback is None
    assert same(model.state_dict(), other.state_dict())
    assert same(state_of(mine), state_of(theirs))


class Refuses(Loss):
    """Cannot run after some steps."""

    def forward(self, x):
        if not isinstance(x, FunctionalTensor):
            raise ValueError("no more")
        return super().forward(x)


def test_what_the_model_raises_is_raised():
    model, args = Refuses(nn.Linear(6, 8)), (torch.randn(4, 6),)
    before = copy.deepcopy(model.state_dict())
    step = TrainStep(model, args, "min", optimizer=optim.SGD(model.parameters(), 0.1), **SEARCH)
    with pytest.raises(ValueError, match="no more"):
        step(*args)
    assert same(model.state_dict(), before) and step.report.fallback is None


class Overwrites(Loss):
    """Changes a parameter that nothing updates."""

    def __init__(self):
        super().__init__(nn.Linear(6, 8))
        self.mean = nn.Parameter(torch.zeros(6), requires_grad=False)

    def forward(self, x):
        if not isinstance(x, FunctionalTensor):
            self.mean.add_(x.mean(0))
        return super().forward(x - self.mean)


def test_a_parameter_that_the_model_overwrites_is_named():
    torch.manual_seed(0)
    model, args = Overwrites(), (torch.randn(4, 6),)
    other = copy.deepcopy(model)
    mine, theirs = (optim.SGD(one.layers.parameters(), 0.1) for one in (model, other))
    step = TrainStep(model, args, "min", optimizer=mine, **SEARCH)
    with pytest.warns(UserWarning, match="the model overwrites `mean`"):
        assert torch.equal(step(*args), eager(other, args, theirs))
    assert same(model.state_dict(), other.state_dict())


@pytest.mark.parametrize("kind", [optim.SGD, optim.Adam, optim.RMSprop, None])
def test_state_is_put_back_bit_for_bit(kind):
    torch.manual_seed(0)
    model = Loss(nn.Linear(6, 32), nn.BatchNorm1d(32), nn.Dropout(0.5))
    options = {"momentum": 0.9} if kind in (optim.SGD, optim.RMSprop) else {}
    updates = None if kind is None else Updates(kind(model.parameters(), 0.1, **options))
    for one in model.parameters():
        if updates is not None:
            updates.state(one)
        one.grad = torch.full_like(one, -0.0)
    tensors = {name: one.data_ptr() for name, one in model.state_dict().items()}
    state, loss = State(model, updates), torch.zeros(())
    saved, before = state.save(), state.digests(loss)
    plain = Eager(model, updates)
    for _ in range(2):
        plain.step((torch.randn(16, 6),))
        assert sum(before[name] != now for name, now in state.digests(loss).items()) >= 5
        saved.restore()
        assert state.digests(loss) == before
    assert tensors == {name: one.data_ptr() for name, one in model.state_dict().items()}
    assert state.size() == sum(one.contents.nbytes for one in saved._held)


def test_digests_tell_bits_types_and_shapes_apart():
    x = torch.arange(6.0).reshape(2, 3)
    assert digest(x) == digest(x.clone()) == digest(x.t().contiguous().t())
    others = [x.t(), x.reshape(3, 2), x.double(), x.nextafter(x + 1), torch.zeros(0), torch.tensor(0.0)]
    others += [torch.tensor(-0.0), x.bfloat16(), x.to(torch.complex64), torch.tensor(False)]
    assert len({digest(one) for one in (x, *others)}) == len(others) + 1
    large = torch.randn(5_000_000)
    other = large.clone()
    other[-1] += 1
    assert digest(large) != digest(other)
