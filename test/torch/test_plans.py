"""Plans of several budgets of one graph: what is known of one budget counts for the others."""

import types

import pytest
from remat_opt._plan import Plan
from remat_opt.errors import LimitError
from remat_opt.torch import _plans
from remat_opt.torch._budget import objects_around
from remat_opt.torch._plans import Search, plan_within

BASELINE = 1000
"""Bytes without recomputation."""


class Found(dict):
    """A plan as far as it counts here."""

    def __init__(self, peak, duration):
        baseline = {"baseline_peak_bytes": BASELINE, "baseline_duration": 100}
        super().__init__(steps=[], peak=peak, duration=duration, **baseline)

    peak_bytes = property(lambda self: self["peak"])
    duration = property(lambda self: self["duration"])


def searched(monkeypatch, answers, reached=()):
    """What a search answers, by budget; nothing for others, of which `reached` has the lowest peaks that it came down
    to. Gives the list of what was asked."""
    asked = []

    def solve(problem, budget, **_):
        asked.append(budget)
        if budget not in answers:
            details = {"lowest_peak_bytes": dict(reached).get(budget)}
            raise LimitError(f"nothing for {budget}", "limit", details=details)
        return Found(*answers[budget])

    monkeypatch.setattr(_plans, "solve", solve)
    monkeypatch.setattr(_plans, "Plan", lambda stored: Found(stored["peak"], stored["duration"]))
    return asked


def graph(name, ops=3):
    return types.SimpleNamespace(digest=lambda: name, problem=lambda: None, nodes=range(ops))


@pytest.fixture(params=[True, False], autouse=True)
def _cache_is_there(request, monkeypatch, tmp_path):
    """With a cache, and with one that cannot be written."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path) if request.param else "/dev/null/none")
    return request.param


def test_a_budget_is_not_answered_by_more_than_a_larger_one(monkeypatch, _cache_is_there):
    if not _cache_is_there:
        pytest.skip("nothing is known of other budgets")
    searched(monkeypatch, {"60%": (590, 120), "min": (800, 200)})
    assert plan_within(graph("a"), "60%", Search())[0].peak_bytes == 590
    for budget in ("50%", "min", 400):
        plan, keeps = plan_within(graph("a"), budget, Search())
        assert plan.peak_bytes == 590 and keeps == (budget == "min")
    # Another order is another question.
    assert plan_within(graph("a"), "min", Search(order="fixed"))[0].peak_bytes == 800


def test_a_larger_budget_is_not_answered_by_a_longer_plan(monkeypatch, _cache_is_there):
    if not _cache_is_there:
        pytest.skip("nothing is known of other budgets")
    searched(monkeypatch, {"50%": (480, 110), "60%": (590, 120), "min": (300, 200)})
    for budget in ("50%", "60%"):
        plan, keeps = plan_within(graph("b"), budget, Search())
        assert keeps and (plan.peak_bytes, plan.duration) == (480, 110)


def test_a_part_of_a_search_has_its_share_of_time_and_steps():
    assert Search(10.0, 1000).part(0.5) == Search(5.0, 500)
    assert Search(10.0).part(0.5) == Search(5.0)
    assert Search(10.0, 1).part(0.5).step_limit == 1


def test_a_budget_that_the_lowest_peak_keeps_is_kept(monkeypatch):
    searched(monkeypatch, {"min": (450, 200)})
    plan, keeps = plan_within(graph("c"), "50%", Search())
    assert keeps and plan.peak_bytes == 450


def test_the_lowest_peak_of_a_large_graph_is_looked_for_under_budgets_too(monkeypatch):
    asked = searched(monkeypatch, {"min": (800, 200), 680: (670, 210), 569: (500, 220)})
    plan, keeps = plan_within(graph("d", 5000), "min", Search())
    assert keeps and plan.peak_bytes == 500 and asked == ["min", 100, 266, 680, 569]
    asked = searched(monkeypatch, {"min": (800, 200)})
    assert plan_within(graph("e"), "min", Search())[0].peak_bytes == 800 and asked == ["min"]
    with pytest.raises(LimitError):
        searched(monkeypatch, {})
        plan_within(graph("f"), "50%", Search())


def test_what_a_search_came_down_to_is_asked_for(monkeypatch, _cache_is_there):
    """A search for a budget that no plan keeps may come lower than one for the lowest peak, and has no plan to show."""
    asked = searched(monkeypatch, {"min": (800, 200), 306: (305, 240)}, {100: 300})
    for _ in range(2):
        plan, keeps = plan_within(graph("i", 5000), "min", Search())
        assert keeps and plan.peak_bytes == 305
    first = ["min", 100, 306]
    assert asked == (first if _cache_is_there else first * 2)


def test_what_is_hardly_lower_is_not_asked_for(monkeypatch):
    asked = searched(monkeypatch, {"min": (800, 200)}, {100: 795, 266: 2000, 680: 790})
    assert plan_within(graph("j", 5000), "min", Search())[0].peak_bytes == 800
    assert asked == ["min", 100, 266, 680]


def test_all_budgets_below_have_a_limited_time(monkeypatch):
    """Half as much again as the search for the lowest peak."""
    limits = []

    def solve(problem, budget, time_limit, **_):
        limits.append(time_limit)
        if budget != "min":
            raise LimitError("nothing", "limit", details={"lowest_peak_bytes": int(budget * 1.2)})
        return Found(800, 200)

    monkeypatch.setattr(_plans, "solve", solve)
    assert plan_within(graph("k", 5000), "min", Search(10.0))[0].peak_bytes == 800
    assert limits[0] == 10.0 and len(limits) > 2 and sum(limits[1:]) <= 15.0


def test_auto_is_the_lowest_peak_that_is_known_within_its_time(monkeypatch, _cache_is_there):
    searched(monkeypatch, {"60%": (590, 105), "50%": (490, 106), "auto": (700, 103), "min": (300, 150)})
    assert plan_within(graph("e"), "auto", Search())[0].peak_bytes == 700
    for budget in ("60%", "50%", "min"):
        plan_within(graph("e"), budget, Search())
    plan, keeps = plan_within(graph("e"), "auto", Search())
    assert keeps
    assert plan.peak_bytes == (590 if _cache_is_there else 700)


def test_auto_of_a_large_graph_is_looked_for_under_budgets_too(monkeypatch):
    asked = searched(monkeypatch, {"auto": (800, 102), 680: (670, 104), 569: (500, 110), 425: (400, 104)})
    plan, keeps = plan_within(graph("f", 5000), "auto", Search())
    assert (plan.peak_bytes, keeps) == (670, True)
    # What takes too long is no step to lower ones.
    assert asked == ["auto", 680, 569]


def test_auto_gives_what_there_is_where_nothing_is_quick(monkeypatch):
    searched(monkeypatch, {"auto": (800, 120)})
    assert plan_within(graph("g"), "auto", Search())[0].peak_bytes == 800


class Counted:
    """Stands for a graph whose plans have so many tensors at once, one after the other."""

    def __init__(self, *plans):
        self.plans = list(plans)

    def tensors_at_once(self, order=None):
        return 1000 if order is None else self.plans.pop(0)


@pytest.mark.parametrize(
    ("budget", "plans", "kept", "tensors"),
    [
        (10 << 20, [900], True, 1000),
        (10 << 20, [1500, 1400], True, 1500),
        (10 << 20, [1500, 1600, 1700], False, 1700),
        ("60%", [1500], True, 1500),
    ],
)
def test_bytes_are_for_the_objects_around_the_tensors_of_the_plan_too(budget, plans, kept, tensors, monkeypatch):
    asked = []

    def within(graph, budget, search):
        asked.append(budget)
        return Plan(steps=[]), True

    monkeypatch.setattr(_plans, "plan_within", within)
    assert _plans.plan_in_all(Counted(*plans), budget, Search())[1:] == (kept, tensors)
    counts = [1000, *plans]
    expected = [budget if budget == "60%" else budget - objects_around(budget, counts[place]) for place in range(len(asked))]
    assert asked == expected
