"""Subgraphs of If, Loop and Scan with plans of their own: bits at every level, whichever branch runs, and the heap that is promised."""

import json

import models
import numpy as np
import pytest
from runtime import Settings, inputs, session

EFFORT = ["--no-arena-plan", "--step-limit", "20000", "--threads", "1", "--time-limit", "10m"]
"""The same work on every machine, whatever else runs there."""
BODIES = sorted((models.ROOT / "test" / "models" / "bodies").glob("*.onnx"))


def bits(path, level, scale):
    """The outputs for made-up inputs; with a large scale, `conditional` and `nested` take their other branch."""
    opened = session(path, Settings(level=level))
    feed = {name: (value * scale).astype(value.dtype) for name, value in inputs(opened, {}).items()}
    return [np.asarray(output).tobytes() for output in opened.run(None, feed)]


@pytest.mark.parametrize("level", ["off", "all"])
@pytest.mark.parametrize("path", BODIES, ids=lambda path: path.stem)
def test_subgraphs_keep_their_bits_and_their_promise(path, level, remat_opt, tmp_path):
    out, plan = tmp_path / "out.onnx", tmp_path / "plan.json"
    run = remat_opt(path, "-o", out, "--budget", "60%", "--level", level, *EFFORT, "--emit-plan", plan, "--format", "json")
    assert run.returncode == 0, run.stderr
    report = json.loads(run.stdout)
    assert report["bodies"] and all(body["bytes"] < body["bytes_before"] for body in report["bodies"])
    assert report["within_prediction"] is not False
    measured = report["measured"]["after"]["arena_off"]
    assert measured <= report["budget_bytes"] * 1.01 + 48 * 1024
    assert abs(measured - report["predicted_peak_bytes"]) <= 0.03 * measured + 48 * 1024
    for scale in (1, 100):
        assert bits(out, level, scale) == bits(path, level, scale), f"scale {scale}"
    checked = remat_opt("verify", path, plan)
    assert checked.returncode == 0, checked.stderr
    shown = remat_opt("inspect", path, "--plan", plan)
    assert shown.returncode == 0 and "with a plan for subgraph" in shown.stdout


def test_a_plan_of_a_subgraph_that_is_wrong_is_rejected_by_its_rule(remat_opt, tmp_path):
    plan = tmp_path / "plan.json"
    path = models.ROOT / "test" / "models" / "bodies" / "loop.onnx"
    run = remat_opt(path, "-o", plan, "--budget", "min", *EFFORT)
    assert run.returncode == 0, run.stderr
    document = json.loads(plan.read_text())
    steps = document["bodies"][0]["plan"]["steps"]
    steps.remove(next(step for step in steps if step["op"] == "recompute"))
    plan.write_text(json.dumps(document))
    checked = remat_opt("verify", path, plan, "--format", "json")
    assert checked.returncode == 1
    codes = {violation["code"] for violation in json.loads(checked.stdout)["violations"]}
    assert "V003" in codes, codes
