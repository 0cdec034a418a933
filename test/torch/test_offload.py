"""Values that move to a second memory and back: bits, peaks, and what happens where they cannot."""

import copy
import random

import models
import pytest
import remat_opt
import remat_opt.torch
import torch
from models import SEARCH
from need import NIGHTLY
from remat_opt import UsageError, _native
from remat_opt.torch import Offload, _mapped
from remat_opt.torch._offload import offload_of
from remat_opt.torch._transfers import transfers
from several import Broken
from step import gradients, measure

FAST = 10**9
"""Bytes per second of a bus behind which nothing waits in these models."""
OBJECTS = 16 << 10
"""Bytes by which a promise may exceed a peak whatever its size."""


CASES = [("vit-tiny", "40%", FAST), ("gpt-dropout-tiny", "50%", FAST)]
LARGER = [("unet-tiny", "40%", FAST), ("resnet-tiny", "70%", FAST)]
"""With batch norms."""


@pytest.mark.parametrize(("model", "memory", "rate"), CASES + (LARGER if NIGHTLY else []))
def test_steps_keep_their_promise_and_their_bits(model, memory, rate):
    step = measure(model, "aot_eager", memory, offload={"bytes_per_s": rate}, **SEARCH)
    (report,) = step["reports"]
    promised = report["promised_bytes"] - report["external_bytes"]
    assert report["fallback"] is None and report["gradients"] == "same bits"
    # Plans follow measured times, and what waits for room may find more of it than is promised.
    assert step["bits"] and 0.9 * promised - OBJECTS <= step["peak"] <= promised
    assert report["moved_bytes"] > 0 and report["gap"] is not None
    assert promised < 0.75 * (report["baseline_bytes"] - report["external_bytes"])


def chain():
    torch.manual_seed(0)
    return models.Chain(), (torch.randn(512, 32),)


def planned(model, inputs, budget, **offload):
    """A compiled model that has taken a step, and its report."""
    torch._dynamo.reset()
    given = Offload(**({"bytes_per_s": 100 * FAST} | offload))
    backend = remat_opt.torch.backend(budget, "aot_eager", offload=given, strict=True, **SEARCH)
    run = torch.compile(model, backend=backend)
    run(*inputs).backward()
    return run, backend.reports[0]


def test_where_the_bus_is_fast_less_is_computed_again():
    model, inputs = chain()
    _, moved = planned(model, inputs, "40%")
    torch._dynamo.reset()
    backend = remat_opt.torch.backend("40%", "aot_eager", strict=True, **SEARCH)
    torch.compile(model, backend=backend)(*inputs).backward()
    (computed,) = backend.reports
    # Some ops may take no time at all.
    assert moved.recomputes < computed.recomputes and moved.moved_bytes > 0
    assert computed.moved_bytes == 0
    assert moved.overhead <= computed.overhead


def test_what_moves_has_room_in_the_second_memory():
    def steps(**offload):
        return measure("chain", "aot_eager", "40%", offload={"bytes_per_s": 100 * FAST} | offload, **SEARCH)

    room = steps()["second_memory"] // 2
    step = steps(memory=room)
    # Room is used again once a value is back: more may move than there is room for at a time.
    assert step["reports"][0]["moved_bytes"] > 0 and room >= step["second_memory"] > 0


def test_pages_go_with_the_step_and_with_a_forward_that_has_no_backward():
    model, inputs = chain()
    run, _ = planned(model, inputs, "40%")
    before = _native.moved_bytes()
    loss = run(*inputs)
    assert _native.moved_bytes()[2] > before[2]
    loss.backward()
    assert _native.moved_bytes()[2] == before[2]
    loss = run(*inputs)
    assert _native.moved_bytes()[2] > before[2]
    del loss
    assert _native.moved_bytes()[2] == before[2]


def test_a_backward_may_run_twice():
    model, inputs = chain()
    plain = gradients(model, model, inputs)
    with torch._functorch.config.patch(donated_buffer=False):
        run, _ = planned(model, inputs, "40%")
        loss = run(*inputs)
        for _ in range(2):
            model.zero_grad()
            loss.backward(retain_graph=True)
            assert all(torch.equal(one.grad, plain[name]) for name, one in model.named_parameters())


def test_several_graphs_move_values_too():
    torch.manual_seed(0)
    model, x = Broken(4), torch.randn(4096, 32)
    plain = gradients(model, model, [x])
    backend = remat_opt.torch.backend("50%", "aot_eager", offload=Offload(bytes_per_s=100 * FAST), strict=True, **SEARCH)
    run = torch.compile(model, backend=backend)
    for _ in range(5):
        mine = gradients(model, run, [x])
        assert all(torch.equal(mine[name], one) for name, one in plain.items())
    assert len(backend.reports) == 3
    assert all(one.fallback is None and one.promised_bytes for one in backend.reports)


def test_a_folder_that_cannot_have_the_file_is_named():
    model, inputs = chain()
    for rate in (None, FAST):
        torch._dynamo.reset()
        offload = Offload(folder="/nonexistent/pages", bytes_per_s=rate)
        backend = remat_opt.torch.backend("min", "aot_eager", offload=offload, **SEARCH)
        run = torch.compile(model, backend=backend)
        run(*inputs).backward()
        assert "/nonexistent/pages" in backend.reports[0].fallback


@pytest.mark.parametrize("state", [False, True])
def test_whole_steps_move_values_and_leave_the_state_of_the_optimizer_outside(monkeypatch, state):
    monkeypatch.setattr(_mapped, "_LEAST", 1)
    model, inputs = models.make("vit-tiny")
    other = copy.deepcopy(model)
    mine, theirs = (torch.optim.AdamW(one.parameters(), lr=1e-3) for one in (model, other))
    offload = Offload(bytes_per_s=FAST, state=state)
    step = remat_opt.torch.TrainStep(model, inputs, "35%", optimizer=mine, strict=True, offload=offload, **SEARCH)
    for _ in range(3):
        loss = step(*inputs)
        theirs.zero_grad()
        plain = other(*inputs)
        plain.backward()
        theirs.step()
        assert torch.equal(loss, plain)
        assert all(torch.equal(a, b) for a, b in zip(model.parameters(), other.parameters()))
    assert step.report.moved_bytes > 0 and step.report.gradients == "same bits"
    whole, given = (sum(one.nbytes for one in several) for several in (model.parameters(), inputs))
    assert (step.report.external_bytes - given < 1.5 * whole) == state
    # The state is the optimizer's own, wherever it lies.
    saved, expected = mine.state_dict()["state"], theirs.state_dict()["state"]
    assert all(torch.equal(saved[one]["exp_avg"], expected[one]["exp_avg"]) for one in expected)
    mine.load_state_dict(copy.deepcopy(theirs.state_dict()))
    loss, plain = step(*inputs), other(*inputs)
    assert torch.equal(loss, plain)


def test_state_that_begins_as_nothing_lies_in_a_file_too():
    torch.manual_seed(0)
    model, x = models.Chain(2, 512), torch.randn(64, 512)
    other = copy.deepcopy(model)
    mine, theirs = (torch.optim.SGD(one.parameters(), lr=0.1, momentum=0.9) for one in (model, other))
    offload = Offload(bytes_per_s=FAST, state=True)
    step = remat_opt.torch.TrainStep(model, (x,), "80%", optimizer=mine, strict=True, offload=offload, **SEARCH)
    for _ in range(3):
        step(x)
        theirs.zero_grad()
        other(x).backward()
        theirs.step()
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), other.parameters()))
    assert any(mine.state[one]["momentum_buffer"].untyped_storage().is_shared() for one in model.parameters())


def test_plans_keep_their_budget_however_long_transfers_take():
    """Every wait is there: memory is counted as if nothing moved before it is waited for."""
    model, inputs = models.make("vit-tiny")
    problem = remat_opt.torch.capture(model, inputs, cut=True, durations="estimated")
    dice = random.Random(3)
    for share in ("40%", "60%"):
        rate = dice.randrange(10**7, 10**10)
        way = {"latency_ns": 1000, "bytes_per_s": rate}
        document = problem.document | {"paging": {"mode": "dma", "page_out": way, "page_in": way}}
        plan = remat_opt.solve(remat_opt.Problem(document), share, solver="paging", **SEARCH)
        graph = Graph(document)
        found = transfers(graph, plan)
        assert found.moved_bytes > 0
        assert replayed(document, found.actions) <= found.peak_bytes <= plan.peak_bytes
        most = outside(document, found.actions)
        document["paging"]["capacity"] = most // 2
        plan = remat_opt.solve(remat_opt.Problem(document), share, solver="paging", **SEARCH)
        found = transfers(graph, plan)
        assert 0 < outside(document, found.actions) <= most // 2
        assert replayed(document, found.actions) <= found.peak_bytes <= plan.peak_bytes


class Graph:
    """As much of a `TrainingGraph` as transfers ask for."""

    def __init__(self, document):
        self.document, self.written_storages = document, set()


def replayed(document, actions):
    """The peak of actions, where a storage is in memory from the first moment at which it may be to the last."""
    tensors, storages = document["tensors"], document["storages"]
    size = [0 if one["role"] == "external" else one["bytes"] for one in storages]
    ops = {one["name"]: one for one in document["ops"]}
    makes = {}
    for index, one in enumerate(storages):
        if "producer" in tensors[one["root"]]:
            makes.setdefault(document["ops"][tensors[one["root"]]["producer"]]["name"], []).append(index)
    uses = {}
    for at, action in enumerate(actions):
        touched = {action.storage} if action.kind != "run" else {tensors[one]["storage"] for one in ops[action.op]["reads"]}
        for one in touched:
            uses.setdefault(one, []).append(at)
    live, most = set(), 0
    for at, action in enumerate(actions):
        if action.kind == "run":
            made = set(makes.get(action.op, ()))
            most = max(most, sum(size[one] for one in live | made) + ops[action.op].get("workspace", 0))
            live |= made
            # What nothing reads until it is made again is free.
            live = {one for one in live if storages[one]["role"] != "transient" or is_needed(actions, makes, uses, one, at)}
        elif action.kind == "coming":
            live.add(action.storage)
        elif action.kind in ("left", "dropped"):
            live.discard(action.storage)
        most = max(most, sum(size[one] for one in live))
    return most


def outside(document, actions):
    """Most bytes in the second memory, where a copy goes when the last transfer that reads it is over."""
    held, most = {}, 0
    for at, action in enumerate(actions):
        if action.kind == "out":
            held[action.storage] = document["storages"][action.storage]["bytes"]
            most = max(most, sum(held.values()))
        elif action.kind == "back":
            later = (one.kind for one in actions[at + 1 :] if one.storage == action.storage)
            if next((kind for kind in later if kind in ("out", "coming")), None) != "coming":
                held.pop(action.storage, None)
    return most


def is_needed(actions, makes, uses, storage, at):
    """Whether the memory of a storage is read before it is made anew."""
    for later in uses.get(storage, ()):
        if later > at:
            between = (one for one in actions[at + 1 : later] if one.kind == "run")
            return not any(storage in makes.get(one.op, ()) for one in between)
    return False


def test_arguments_that_make_no_sense_are_refused():
    assert offload_of(None) is offload_of(False) is None
    assert offload_of(True) == Offload() and offload_of("1GiB") == Offload("1GiB")
    for wrong in ("40%", "much", -1, 2.5, [1]):
        with pytest.raises(UsageError):
            offload_of(wrong)
    with pytest.raises(UsageError, match="at least 1 byte"):
        Offload(bytes_per_s=0)
    with pytest.raises(UsageError, match="behind Inductor"):
        remat_opt.torch.backend("1GiB", offload=True)
