"""Processes that train together use plans together, or none of them does."""

import pathlib

import pytest
import step
import torch

pytestmark = pytest.mark.skipif(not torch.distributed.is_available(), reason="PyTorch has no processes here")


@pytest.fixture(scope="module")
def found():
    """What two processes found in the cases of `ranks.py`, by name."""
    return step.in_two_processes(str(pathlib.Path(__file__).with_name("ranks.py")))


@pytest.mark.parametrize("case", ["whole", "compiled", "collective"])
def test_right_plans_are_used(found, case):
    for one in found[case]:
        assert one["same"] and one["fallback"] is None
        assert one["gradients"] == "same bits" and one["promised_bytes"] is not None


@pytest.mark.parametrize(
    ("case", "rank", "reason"),
    [
        ("whole, one is wrong", 1, "differs bitwise from eager PyTorch"),
        ("compiled, one is wrong", 1, "a gradient is wrong"),
        ("collective, one is wrong", 0, "a gradient is wrong"),
    ],
)
def test_where_one_process_finds_a_difference_all_fall_back(found, case, rank, reason):
    assert found[case][rank]["fallback"].endswith(reason)
    other = found[case][1 - rank]
    assert other["fallback"].startswith(f"process {rank}: ") and other["fallback"].endswith(reason)
    assert all(one["same"] and one["promised_bytes"] is None for one in found[case])


def test_strict_raises_in_all_processes(found):
    reasons = [one["error"] for one in found["whole, strict"]]
    assert reasons[0] == f"process 1: {reasons[1]}"


def test_a_process_that_does_not_answer_is_not_waited_for(found):
    one = found["silent"][0]
    assert one["same"] and one["promised_bytes"] is None
    assert one["fallback"] == "process 1 did not answer within 1 s"
