"""What `memory=` means."""

import models
import pytest
import torch
from remat_opt import UsageError
from remat_opt.torch import TrainStep, _budget, _candidates, _free, backend, partitioner
from remat_opt.torch._plans import longest_of
from remat_opt.torch._split import Split

@pytest.mark.parametrize(
    ("memory", "total"),
    [
        (4096, 4096),
        ("4096", 4096),
        ("64kB", 64_000),
        ("2GiB", 2 << 30),
        ("1.5 GB", 1_500_000_000),
        ("0.5MiB", 1 << 19),
        ("3M", 3_000_000),
        (" 16gb ", 16_000_000_000),
        (".5 mib", 1 << 19),
    ],
)
def test_sizes_are_exact(memory, total):
    assert _budget.parse(memory) == _budget.Budget(total, None)


@pytest.mark.parametrize(("memory", "share"), [
        ("60%", "60%"),
        (0.6, "60%"),
        ("0.6", "60%"),
        (".6", "60%"),
        ("12.5 %", "12.5%"),
        (0.123456, "12.3456%"),
        (1.0, "100%"),
        ("1.0", "100%"),
        ("min", "min"),
        ("Auto", "auto"),
    ],
)
def test_shares_are_left_to_the_solver(memory, share):
    budget = _budget.parse(memory)
    assert budget == _budget.Budget(None, share)
    assert budget.of_plan(1000) == share


def test_parameters_and_inputs_are_subtracted():
    assert _budget.parse("1MiB").of_plan(1 << 19) == 1 << 19


@pytest.mark.parametrize(
    ("memory", "says"),
    [
        (0, '"min"'),
        (-1, '"min"'),
        ("0", '"min"'),
        ("0%", '"min"'),
        (0.0, '"min"'),
        (-0.5, '"min"'),
        ("101%", "1.0"),
        (1.5, '"1.5GB"'),
        ("1.5", '"1.5GB"'),
        (float("nan"), "above 100 %"),
        (float("inf"), "above 100 %"),
        ("2 GiBs", '"2GiB"'),
        ("much", '"auto"'),
        ("", '"fit"'),
        ("none", '"100%"'),
        ("GiB", "number before the unit"),
        ("-5MB", "negative"),
        ("1e9", '"2GiB"'),
        ("9999999TiB", '"100%"'),
        (True, "not of type bool"),
        (None, "not of type NoneType"),
    ],
)
def test_nonsense_is_refused_with_what_to_write(memory, says):
    with pytest.raises(UsageError) as error:
        backend(memory)
    assert says in str(error.value)


def test_unknown_compilers_are_refused():
    with pytest.raises(UsageError, match="inner"):
        backend("1GB", inner="jit")


@pytest.fixture
def free(monkeypatch):
    """Sets what is free, by device."""
    bytes_of = {}
    monkeypatch.setattr(_free, "free_bytes", bytes_of.__getitem__)
    return bytes_of


def test_what_is_free_comes_on_top_of_what_is_there(free):
    free |= {"cpu": 1000, "cuda": 2000}
    fit = _budget.parse("fit")
    assert fit.is_free
    assert _free.resolved(fit, "cpu", 5000, 0) == _budget.Budget(5900, None)
    assert _free.resolved(fit, "cuda", 5000, 0) == _budget.Budget(6800, None)
    # Room for what the optimizer makes of each gradient.
    assert _free.resolved(fit, "cpu", 5000, 100) == _budget.Budget(5700, None)
    assert _free.resolved(fit, "cpu", 5000, 5000).of_plan(5000) == 1
    assert _free.resolved(_budget.parse("60%"), "cpu", 5000, 0) == _budget.parse("60%")


def small():
    """A model of 0.6 MB whose step takes some more, and its inputs: `model(*inputs)` is the loss."""
    torch.manual_seed(0)
    inputs = torch.randint(64, (8, 64)), torch.randint(64, (8, 64))
    return models.Language(width=64, depth=2, heads=4, length=64, vocabulary=64), inputs


def report_of(memory):
    torch._dynamo.reset()
    model, inputs = small()
    compiled = backend(memory, "aot_eager", check=False, step_limit=3000, threads=1, time_limit=600)
    torch.compile(model, backend=compiled)(*inputs).backward()
    (report,) = compiled.reports
    assert report.fallback is None
    return report


def test_a_step_fits_into_what_is_free_when_it_is_compiled(free, caplog):
    weights = sum(one.nbytes for one in small()[0].parameters())
    found = []
    for room in (5 << 20, 400 << 20):
        free["cpu"] = room
        found.append(report := report_of("fit"))
        assert report.budget_bytes == report.external_bytes + room - room // 10 - 2 * weights
        assert report.promised_bytes <= report.budget_bytes
    assert found[0].recomputes > 0 == found[1].recomputes
    assert not caplog.records


def test_what_is_free_is_too_little(free, caplog):
    free["cpu"] = 1 << 20
    report = report_of("fit")
    assert report.promised_bytes > report.budget_bytes
    assert "no plan keeps" in caplog.text


def test_a_whole_step_holds_its_state_already(free):
    free["cpu"] = 8 << 20
    model, inputs = small()
    optimizer = torch.optim.AdamW(model.parameters())
    search = {"step_limit": 3000, "threads": 1, "time_limit": 600}
    report = TrainStep(model, inputs, "fit", optimizer=optimizer, check=False, **search).report
    assert report.budget_bytes == report.external_bytes + (8 << 20) - (8 << 20) // 10
    assert report.promised_bytes <= report.budget_bytes


def test_what_is_free_is_part_of_the_key_of_caches(monkeypatch):
    from remat_opt.torch import _partition

    for memory, differs in (("fit", True), ("60%", False)):
        keys = set()
        for room in (1000, 2000):
            monkeypatch.setattr(_partition, "free_bytes", lambda _, room=room: room)
            keys.add(partitioner(memory).uuid())
        assert (len(keys) == 2) == differs


def test_auto_is_the_lowest_peak_for_little_time():
    first, least, share, auto = (report_of(memory) for memory in ("auto", "min", "60%", "auto"))
    assert least.promised_bytes <= auto.promised_bytes <= first.promised_bytes < first.baseline_bytes
    assert auto.overhead <= 0.05
    if share.overhead <= 0.05:
        assert auto.promised_bytes <= share.promised_bytes


@pytest.mark.parametrize(
    ("ordered", "longest", "left"),
    [(True, None, "abcd"), (False, None, "abd"), (True, 105, "abc"), (False, 105, "ab"), (True, 99, "a"), (False, 99, "a")],
)
def test_auto_leaves_splits_that_take_little_time(ordered, longest, left):
    known = object.__new__(_candidates.Candidates)
    given = {"a": (100, ()), "b": (104, ()), "c": (105, ("one", "two")), "d": (106, ())}
    known.splits = [Split(name, (name,), steps, duration) for name, (duration, steps) in given.items()]
    known.allow(ordered, longest)
    assert "".join(one.name for one in known.splits) == left


def test_auto_allows_a_twentieth_of_the_time():
    assert [longest_of(once) for once in (0, 19, 20, 1_000_000)] == [0, 19, 21, 1_050_000]
    # Of the lowest peak, as for "min".
    assert _budget.parse("auto").of_candidates(1000, 5000) == _budget.parse("min").of_candidates(1000, 5000) == 0
