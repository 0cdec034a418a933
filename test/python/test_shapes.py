"""One plan for all shapes: on random ones the process grows by little more than what is live, and the bits are those of a
session without a plan."""

import json

import need
import pytest
import shapes_lab
from test_sizes import images, texts

COUNT = 1000 if need.NIGHTLY else 60
NETWORKS = {
    "texts": (texts, "batch=1..6,seq=1..96"),
    "images": (images, "h=24..160,w=24..160"),
    "speech": (shapes_lab.speech, "t=4..600"),
    "detector": (shapes_lab.detector, "n=1..3,h=40..200:8,w=40..200:8"),
    "step": (shapes_lab.step, "n=1..512"),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_the_process_stays_near_what_is_live(name, remat_opt, tmp_path):
    make, ranges = NETWORKS[name]
    make(tmp_path / "model.onnx")
    out = tmp_path / "out.onnx"
    arguments = ["--shapes", ranges, "--budget", "none", "--step-limit", "300", "--time-limit", "10m", "--format", "json"]
    run = remat_opt(tmp_path / "model.onnx", "-o", out, *arguments)
    assert run.returncode == 0, run.stderr
    report = json.loads(run.stdout)
    arena, bound = report["arena_plan"], report["range"]["peak_bound_bytes"]
    assert arena is not None, run.stderr
    shapes = shapes_lab.some(ranges, COUNT)
    for threads in (1, 2):
        rows, figures = shapes_lab.in_a_process(shapes_lab.runs, out, arena["file"], arena["library"], shapes, threads)
        stock, _ = shapes_lab.in_a_process(shapes_lab.runs, tmp_path / "model.onnx", None, arena["library"], shapes, threads)
        assert [row[2] for row in rows] == [row[2] for row in stock]
        assert (figures["missed"], figures["refused"]) == (0, 0), figures
        assert figures["runs"] == COUNT
        plan = shapes_lab.Plan(arena["file"])
        assert shapes_lab.beyond(plan, shapes, rows, threads) <= 0
        assert all(row[0] <= bound + 1_000_000 + shapes_lab.CODE for row in rows)
        assert max(plan.load(dims, threads) for dims in shapes) <= bound
