"""What `memory=` means."""

import pytest
from remat_opt import UsageError
from remat_opt.torch import _budget, backend


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
    ],
)
def test_sizes_are_exact(memory, total):
    assert _budget.parse(memory) == _budget.Budget(total, None)


@pytest.mark.parametrize(("memory", "share"), [("60%", "60%"), (0.6, "60.0000%"), ("min", "min")])
def test_shares_are_left_to_the_solver(memory, share):
    assert _budget.parse(memory).of_plan(1000) == share


def test_parameters_and_inputs_are_subtracted():
    assert _budget.parse("1MiB").of_plan(1 << 19) == 1 << 19


@pytest.mark.parametrize("memory", [0, -1, "2 GiBs", "much", "0%", "101%", 1.5, True, None, "-5MB"])
def test_nonsense_is_refused(memory):
    with pytest.raises(UsageError):
        backend(memory)


def test_unknown_compilers_are_refused():
    with pytest.raises(UsageError, match="inner"):
        backend("1GB", inner="jit")
