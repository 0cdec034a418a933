"""The examples that train with PyTorch."""

import json
import os
import pathlib
import subprocess
import sys

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
EXAMPLE = EXAMPLES / "larger_batch.py"


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


def test_the_notebook_about_training_runs():
    book = json.loads((EXAMPLES / "training.ipynb").read_text())
    code = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
    assert len(code) > 3 and not any(cell["outputs"] for cell in code), "outputs are not kept"
    names: dict[str, object] = {}
    for cell in code:
        exec("".join(cell["source"]), names)
    assert "same bits" in str(names["report"]) and names["moving"].reports[0].moved_bytes > 0
