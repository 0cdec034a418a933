"""The examples that train with PyTorch."""

import os
import pathlib
import subprocess
import sys

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples" / "larger_batch.py"


def test_a_batch_that_does_not_fit_trains_within_the_same_memory():
    line = [sys.executable, EXAMPLE, "--batch", "16", "--memory", "60", "--steps", "2", "--device", "cpu", "--time-limit", "1"]
    run = subprocess.run(
        line, env={**os.environ, "OMP_NUM_THREADS": "1"}, stdout=subprocess.PIPE, text=True, check=True, timeout=300
    )
    as_it_is, planned, report = run.stdout.splitlines()
    # Of PyTorch's allocator, or of Python's.
    assert "can't allocate memory" in as_it_is or "MemoryError" in as_it_is
    assert planned.startswith('planned: {"loss": ')
    assert "gradients: same bits" in report
