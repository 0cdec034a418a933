"""Plans behind Inductor. Its compiler takes some ten seconds for each graph, so the models are tiny."""

import pickle

import models
import pytest
import remat_opt.torch
import torch
from models import SEARCH
from remat_opt.torch import _candidates, _check, _code, _compiled, _live, _measure, _partition, _predict, _split, _versions
from step import gradients, measure
from test_backend import equal
from torch._inductor import compile_fx
from torch.fx.experimental.proxy_tensor import make_fx

CLOSE = 1e-4


def make():
    torch.manual_seed(0)
    return models.Chain(4), torch.randn(2048, 32)


def close(mine, plain):
    whole = torch.stack([one.norm() for one in plain.values()]).norm()
    return all((mine[name] - one).norm() <= CLOSE * whole for name, one in plain.items())


def train(memory="min", **keywords):
    model, x = make()
    backend = remat_opt.torch.backend(memory, "inductor", **(SEARCH | keywords))
    mine = gradients(model, torch.compile(model, backend=backend), (x,))
    return mine, gradients(model, model, (x,)), backend


@pytest.fixture
def own_peaks(monkeypatch, tmp_path):
    """Peaks of these tests are not those of others."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@pytest.fixture
def interpreted(monkeypatch, own_peaks):
    """Stands for Inductor: graphs are run op by op, so that nothing is compiled, and live values are what is predicted."""
    monkeypatch.setattr(_code.Inner, "compile", lambda self, *arguments: _code.op_by_op(*arguments))
    monkeypatch.setattr(_candidates, "predict", _candidates.footprint)


@pytest.fixture
def found(monkeypatch):
    """The graphs whose splits were looked for, each with these."""
    pairs, find = [], _candidates._find

    def both(source, search):
        splits, op_by_op = find(source, search)
        pairs.append((source, splits))
        return splits, op_by_op

    monkeypatch.setattr(_candidates, "_find", both)
    return pairs


def again(memory, **keywords):
    """One more model of the same shape, compiled anew."""
    torch._dynamo.reset()
    return train(memory, **keywords)[2].reports[0]


def test_steps_take_what_is_promised():
    step = measure("chain", "inductor", "60%", **SEARCH)
    (report,) = step["reports"]
    promised = report["promised_bytes"] - report["external_bytes"]
    assert step["peak"] <= 1.05 * promised
    assert step["error"] <= CLOSE
    assert report["fallback"] is None
    assert report["gradients"] in ("close", "same bits")


def test_without_a_meter_the_tensors_are_counted_and_are_those_that_were_predicted(own_peaks, monkeypatch):
    # Which split is chosen depends on the times of ops: estimated ones are the same on every machine.
    monkeypatch.setattr(_measure, "_measured", lambda calls, device: dict.fromkeys(calls, "it is not measured"))
    mine, plain, backend = train("60%", strict=True)
    (report,) = backend.reports
    assert close(mine, plain)
    assert report.fallback is None
    assert report.external_bytes < report.measured_bytes <= report.promised_bytes
    assert abs(report.predicted_bytes - report.measured_bytes) <= 0.01 * (report.measured_bytes - report.external_bytes)


def test_splits_of_pytorch_are_candidates_as_it_makes_them(interpreted, found):
    train("60%")
    ((source, splits),) = found
    own = [one for one in splits if one.knob is not None]
    assert {1.0} < {one.knob for one in own}
    for split in own:
        with torch._functorch.config.patch(activation_memory_budget=split.knob):
            usual = _split.stock_halves(source.joint.copy().gm, source.inputs, source.keywords)
        assert [half.code for half in source.halves(split)] == [half.code for half in usual]
    # Each as Inductor fuses by itself, and where this version can, fused less.
    expected = {False, True} if _versions.fusion_settings() else {False}
    assert {one.is_tight for one in own if one.knob == 1.0} == expected


def test_shares_are_of_what_is_predicted_of_pytorchs_split_without_a_budget(interpreted, found):
    _, _, backend = train("60%")
    ((source, splits),) = found
    usual = next(one for one in splits if one.knob == 1.0 and not one.is_tight)
    (report,) = backend.reports
    assert report.baseline_bytes - report.external_bytes == source.predict(usual).peak
    assert report.promised_bytes == report.external_bytes + int(0.6 * source.predict(usual).peak)


def test_a_planned_graph_keeps_its_order(interpreted, found):
    train("60%")
    ((source, splits),) = found
    ordered = [one for one in splits if one.steps]
    assert ordered
    for split in ordered:
        plan = {"steps": [{"op": "compute", "node": name} for name in split.steps]}
        place = {node.name: index for index, node in enumerate(_split.emit(source.graph, plan).graph.nodes)}
        for half in source.halves(split):
            places = [place[node.name] for node in half.graph.nodes if node.op == "call_function"]
            assert places == sorted(places)


def test_saved_views_of_the_same_memory_are_told():
    def step(x, w):
        y = x @ w
        return y[:2], y[2:], x @ w.t()

    forward = make_fx(step, tracing_mode="fake")(torch.randn(4, 4), torch.randn(4, 4))
    first, second, other = next(iter(forward.graph.find_nodes(op="output"))).args[0]
    assert _split.shares_memory(forward, (first, second, other))
    assert not _split.shares_memory(forward, (first, other))
    assert not _split.shares_memory(forward, (first, first))


@pytest.mark.parametrize("shares", [True, False])
def test_saved_views_of_the_same_memory_are_not_written_over(monkeypatch, own_peaks, shares):
    # Inductor wrote over one of them while another was still to be read: gradients of a vision transformer were wrong.
    if not hasattr(torch._functorch.config, "donated_buffer"):
        pytest.skip("this version writes over no saved tensor")
    usual, seen = torch._functorch.config.donated_buffer, []

    def compile(gm, inputs, inner_compile, config_patches):
        run = _code.op_by_op(gm, inputs, config_patches["custom_partitioner_fn"])
        seen.append(torch._functorch.config.donated_buffer)
        return run

    monkeypatch.setattr(_versions, "has_partitioner_hook", lambda: True)
    monkeypatch.setattr(compile_fx, "compile_fx", compile)
    monkeypatch.setattr(_candidates, "predict", _candidates.footprint)
    monkeypatch.setattr(_partition, "shares_memory", lambda forward, saved: shares)
    train(check=False, strict=True)
    assert seen[0] == (usual and not shares)
    assert torch._functorch.config.donated_buffer == usual


def test_in_doubt_the_split_of_pytorch_comes_first(interpreted, found, monkeypatch):
    # What is saved alone differs, and hardly so.
    monkeypatch.setattr(_measure, "_measured", lambda calls, device: dict.fromkeys(calls, [1_000_000, 0]))
    train("60%")
    ((_, splits),) = found
    assert splits == sorted(splits, key=lambda one: one.duration)
    assert splits[0].knob == 1.0 and not splits[0].is_tight


@pytest.mark.parametrize("is_tight", [True, False])
def test_how_inductor_fuses_is_up_to_the_split(monkeypatch, is_tight):
    name = "max_fusion_size"
    usual = getattr(torch._inductor.config, name)
    settings = _partition.Settings(remat_opt.torch._budget.parse("min"), tight={name: 1})
    partitioner = _partition.Partitioner(settings, "inductor")
    monkeypatch.setattr(compile_fx, "compile_fx_inner", lambda is_inference: getattr(torch._inductor.config, name))

    def compile(gm, inputs, inner_compile, config_patches):
        partitioner.split = _split.Split("one", (), is_tight=is_tight)
        return inner_compile

    monkeypatch.setattr(compile_fx, "compile_fx", compile)
    assert _code.Inner("inductor").compile(None, (), partitioner)(is_inference=True) == (1 if is_tight else usual)


@pytest.mark.parametrize(("probability", "compilations"), [(0.0, 0), (0.5, 1)])
def test_only_what_draws_random_numbers_is_compiled_without_a_plan_to_be_compared(
    interpreted, monkeypatch, probability, compilations
):
    plain, compile = [], _code.Inner.compile
    monkeypatch.setattr(
        _code.Inner, "compile", lambda self, *rest: (plain.append(rest[2] is None), compile(self, *rest))[1]
    )
    model = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.Dropout(probability), torch.nn.Tanh())
    backend = remat_opt.torch.backend("min", **SEARCH)
    torch.compile(lambda x: torch.nn.functional.dropout(model(x), probability).mean(), backend=backend)(
        torch.randn(256, 32)
    ).backward()
    assert backend.reports[0].fallback is None
    assert sum(plain) == compilations


def test_what_a_trial_draws_changes_no_random_numbers():
    before = torch.get_rng_state()
    trial = _check.Trial([torch.ones(4)])
    trial.gradients(torch.rand_like)
    trial.step(torch.rand_like)
    with trial.prepared(torch.rand_like) as step:
        step()
    assert torch.equal(before, torch.get_rng_state())


def test_a_result_that_is_written_over_an_operand_takes_no_memory_of_its_own():
    def step(x, w, v, is_read_again):
        y = x @ w
        return torch.tanh(y) @ v, y @ v if is_read_again else None

    inputs = torch.randn(512, 64), torch.randn(64, 64), torch.randn(64, 1)
    for is_read_again, tensors in ((False, 1), (True, 2)):
        gm = make_fx(lambda *given: step(*given, is_read_again), tracing_mode="fake")(*inputs)
        schedule = _predict._schedule(gm, False, 2)
        peak = schedule.peak({}, _live.Workspace({}, {}))
        assert tensors * 512 * 64 * 4 <= peak <= tensors * 512 * 64 * 4 + 2 * 512 * 4


@pytest.mark.parametrize("has_hook", [True, False])
def test_both_ways_into_inductor_lead_to_the_plan(has_hook, monkeypatch):
    """2.9 and later take the partitioner from the configuration; before, it stands where `compile_fx` looks."""
    if has_hook and not _versions.has_partitioner_hook():
        pytest.skip("this version has no hook")
    monkeypatch.setattr(_versions, "has_partitioner_hook", lambda: has_hook)
    called = []
    split = _partition.Partitioner._split
    monkeypatch.setattr(
        _partition.Partitioner, "_split", lambda self, *rest: (called.append(has_hook), split(self, *rest))[1]
    )
    with _versions.inductor_partitions_with(
        _partition.Partitioner(_partition.Settings(remat_opt.torch._budget.parse("min")), "inductor")
    ) as patches:
        assert bool(patches) == has_hook
    mine, plain, backend = train(check=False, strict=True)
    assert set(called) == {has_hook}
    assert backend.reports[0].fallback is None
    assert close(mine, plain)


def test_where_a_peak_is_above_the_budget_another_split_is_compiled(interpreted, monkeypatch):
    monkeypatch.setattr(_measure, "_measured", lambda calls, device: dict.fromkeys(calls, [1_000_000, 0]))
    peaks = iter([3_000_000, 2_900_000, 1_000_000])
    monkeypatch.setattr(_compiled, "peak_above", lambda run, device: next(peaks))
    mine, plain, backend = train("70%")
    (report,) = backend.reports
    assert report.rounds == len(report.tried) == 3
    assert [line.endswith("above the budget") for line in report.tried] == [True, True, False]
    assert report.measured_bytes == report.external_bytes + 1_000_000 <= report.promised_bytes
    assert equal(mine, plain)


@pytest.mark.parametrize(("near", "measured", "is_taken"), [(1.07, 0.99, True), (1.07, 1.01, False), (1.1, 0.0, None)])
def test_a_faster_split_that_is_predicted_just_above_the_budget_is_measured(
    interpreted, found, monkeypatch, near, measured, is_taken
):
    # `is_taken` is `None` where it is not even compiled.
    limit = 1_000_000
    monkeypatch.setattr(_measure, "_measured", lambda calls, device: dict.fromkeys(calls, [1_000_000, 0]))

    def predict(self, split):
        ((_, splits),) = found
        usual = next(one for one in splits if one.knob == 1.0)
        is_slow = split.duration > usual.duration / 0.94
        peak = near * limit if split == usual else 0.9 * limit if is_slow else 2 * limit
        return _live.Footprint(int(peak), 0, 0, {})

    monkeypatch.setattr(_candidates.Source, "predict", predict)
    peaks = iter([int(0.9 * limit), int(measured * limit)])
    monkeypatch.setattr(_compiled, "peak_above", lambda run, device: next(peaks))
    model, x = make()
    external = sum(one.nbytes for one in (x, *model.parameters()))
    mine, plain, backend = train(external + limit)
    (report,) = backend.reports
    assert report.external_bytes == external and equal(mine, plain)
    assert len(report.tried) == report.rounds == (1 if is_taken is None else 2)
    assert (report.split == "PyTorch's min-cut at 1.0") == bool(is_taken)
    assert report.measured_bytes <= report.promised_bytes == external + limit


def test_what_stays_above_the_budget_is_promised_as_measured(interpreted, monkeypatch):
    monkeypatch.setattr(_compiled, "peak_above", lambda run, device: 1 << 40)
    _, _, backend = train("70%")
    (report,) = backend.reports
    assert report.promised_bytes == report.measured_bytes > 1 << 40
    assert any("no split keeps" in note for note in report.notes)
    assert 1 <= report.rounds <= _compiled._ROUNDS


def test_a_prediction_is_no_promise(interpreted, monkeypatch):
    monkeypatch.setattr(_candidates, "predict", lambda *arguments: _live.Footprint(1, 0, 0, {}))
    _, _, backend = train("20%")
    (report,) = backend.reports
    assert report.predicted_bytes < report.measured_bytes == report.promised_bytes


def test_a_lower_budget_never_has_the_higher_peak(interpreted, monkeypatch):
    monkeypatch.setattr(_measure, "_measured", lambda calls, device: dict.fromkeys(calls, [1_000_000, 0]))
    peaks = [again(memory).measured_bytes for memory in ("100%", "70%", "50%", "30%", "min")]
    assert peaks == sorted(peaks, reverse=True)
    assert peaks[-1] < 0.75 * peaks[0]


def test_a_budget_is_not_answered_by_a_higher_peak_than_a_larger_one():
    fast, slow = _split.Split("fast", ("a",), duration=1), _split.Split("slow", ("b",), duration=2)
    known = object.__new__(_candidates.Candidates)
    known.splits, known._answers, known._rejected = [fast, slow], [(100, slow.key)], []
    known.measured, known.predicted = {slow.key: 60}, {fast.key: _live.Footprint(90, 0, 0, {})}
    assert known.choose(95, pytest.fail) is slow
    assert known.choose(101, pytest.fail) is fast
    known._answers = []
    assert known.choose(95, pytest.fail) is fast


def test_what_was_measured_serves_other_budgets(interpreted, monkeypatch):
    first = again("60%")
    monkeypatch.setattr(_candidates, "predict", lambda *arguments: pytest.fail("this peak is known"))
    second = again(first.measured_bytes)
    assert second.split == first.split
    assert second.predicted_bytes == first.measured_bytes == second.measured_bytes
    assert second.rounds == 1


def corrupted(monkeypatch, is_wrong):
    """Splits whose gradients are wrong."""
    halves = _split.Joint.halves

    def wrong(self, split, *rest):
        found = halves(self, split, *rest)
        if is_wrong(split):
            tanh = next(node for node in found[0].graph.nodes if node.target is torch.ops.aten.tanh.default)
            tanh.target = torch.ops.aten.sin.default
            found[0].recompile()
        return found

    monkeypatch.setattr(_split.Joint, "halves", wrong)


def test_wrong_gradients_are_found(interpreted, monkeypatch):
    corrupted(monkeypatch, lambda split: True)
    mine, plain, backend = train()
    assert equal(mine, plain)
    assert backend.reports[0].gradients == "wrong"
    assert "times the tolerance" in backend.reports[0].fallback


def test_a_split_with_wrong_gradients_gives_way_to_another_one(interpreted, monkeypatch):
    first = again("60%").split
    corrupted(monkeypatch, lambda split: split.name == first)
    torch._dynamo.reset()
    mine, plain, backend = train("60%")
    (report,) = backend.reports
    assert equal(mine, plain)
    assert report.fallback is None
    assert report.split != first
    assert "times the tolerance" in report.tried[0]


def test_what_exceeds_the_tolerance_is_not_excused_by_the_compiler(monkeypatch):
    # With this tolerance Inductor differs from eager PyTorch without a plan, too: that says nothing about the plan.
    monkeypatch.setattr(_check, "_TOLERANCE", {torch.float32: 1e-9})
    mine, plain, backend = train()
    (report,) = backend.reports
    assert close(mine, plain)
    assert report.gradients == "wrong"
    assert "times the tolerance" in report.fallback


def test_dropout_draws_what_inductor_draws_without_a_plan():
    torch.manual_seed(0)
    layers = (torch.nn.Linear(32, 32), torch.nn.Dropout(0.5), torch.nn.Tanh(), torch.nn.Linear(32, 1))
    model = torch.nn.Sequential(*layers)
    x = torch.randn(256, 32)
    backend = remat_opt.torch.backend("min", **SEARCH)
    planned = gradients(model, lambda x: torch.compile(model, backend=backend)(x).mean(), (x,))
    torch._dynamo.reset()
    plain = gradients(model, lambda x: torch.compile(model)(x).mean(), (x,))
    assert backend.reports[0].fallback is None
    assert backend.reports[0].gradients in ("close", "same bits")
    assert close(planned, plain)


def test_partitioners_are_told_apart_by_budget_and_options():
    one, same, other = (remat_opt.torch.partitioner(memory) for memory in ("1GiB", 1 << 30, "2GiB"))
    assert one.uuid() == same.uuid() != other.uuid()
    assert one.uuid() != remat_opt.torch.partitioner("1GiB", time_limit=3).uuid()
    assert pickle.loads(pickle.dumps(one)).uuid() == one.uuid()


@pytest.mark.skipif(not _versions.has_partitioner_hook(), reason="this version has no hook")
def test_the_partitioner_works_from_the_configuration():
    model, x = make()
    planned = remat_opt.torch.partitioner("min", **SEARCH)
    with torch._inductor.config.patch(custom_partitioner_fn=planned):
        with torch._functorch.config.patch(enable_autograd_cache=False):
            mine = gradients(model, torch.compile(model), (x,))
    assert close(mine, gradients(model, model, (x,)))
    assert planned.last is not None
    assert planned.last.fallback is None
