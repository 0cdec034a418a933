"""Processes that train together use plans together, or none of them does."""

import json
import os
import pathlib
import subprocess
import sys

import pytest
import torch

pytestmark = pytest.mark.skipif(not torch.distributed.is_available(), reason="PyTorch has no processes here")


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What two processes found in the cases of `ranks.py`, by name."""
    file = tmp_path_factory.mktemp("ranks") / "store"
    path = [str(pathlib.Path(__file__).parent), *(one for one in sys.path if one)]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(path), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(pathlib.Path(__file__).with_name("ranks.py"))]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    runs = [subprocess.Popen([*command, str(rank), str(file)], env=env, **pipes) for rank in range(2)]
    try:
        outputs = [run.communicate(timeout=280) for run in runs]
    finally:
        for run in runs:
            run.kill()
    for run, (_, errors) in zip(runs, outputs):
        assert run.returncode == 0, errors[-3000:]
    both = [json.loads(output.splitlines()[-1]) for output, _ in outputs]
    return {name: [one[name] for one in both] for name in both[0]}


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
