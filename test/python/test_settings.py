"""Settings that the program recommends: its own program in Python makes a session that takes what the program says."""

import ctypes
import json
import pathlib
import subprocess
import sys

import models
import need
import pytest
from meter import preloaded

TOLERANCE_SHARE, TOLERANCE_BYTES = 0.02, 1 << 20
RUNS = 4

sys.path.insert(0, str(pathlib.Path(__file__).parent))


def growth():
    """The high-water mark of resident memory, in bytes."""
    status = pathlib.Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) << 10


def forget():
    pathlib.Path("/proc/self/clear_refs").write_text("5")


def child(program):
    """Runs the program, then its session, and prints what runs take above the loaded session."""
    from runtime import inputs

    names = {}
    exec(compile(pathlib.Path(program).read_text(), program, "exec"), names)
    session = names["session"]
    feed = inputs(session, {})
    heap = ctypes.CDLL(None)
    heap.remat_heap_live.restype = heap.remat_heap_peak.restype = ctypes.c_int64
    before = heap.remat_heap_live()
    heap.remat_heap_reset()
    forget()
    resident = growth()
    outputs = session.run(None, feed)
    first = heap.remat_heap_peak() - before, growth() - resident
    del outputs
    heap.remat_heap_reset()
    forget()
    for _ in range(RUNS):
        session.run(None, feed)
    later = heap.remat_heap_peak() - before, growth() - resident
    keys = ["heap_first_bytes", "resident_first_bytes", "heap_later_bytes", "resident_later_bytes"]
    print(json.dumps(dict(zip(keys, [*first, *later], strict=True))))


def measured(program):
    run = subprocess.run(
        [sys.executable, __file__, str(program)], env=preloaded(), capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def are_close(one, other):
    return abs(one - other) <= TOLERANCE_SHARE * max(one, other) + TOLERANCE_BYTES


@pytest.mark.parametrize("network", models.OWN + (models.SHARED[-2:-1] if need.NIGHTLY else []), ids=lambda path: path.stem)
def test_the_recommended_program_takes_what_is_printed(network, remat_opt, tmp_path):
    out, program = tmp_path / "out.onnx", tmp_path / "session.py"
    arguments = ["--budget", "none", "--settings", "--emit-settings", program, "--step-limit", "500", "--threads", "1", "--time-limit", "10m", "--format", "json"]
    run = remat_opt(network, "-o", out, *arguments)
    assert run.returncode == 0, run.stderr
    settings = json.loads(run.stdout)["settings"]
    assert program.read_text() == settings["python"]
    tried = {one["setting"]: one for one in settings["tried"]}
    best, stock = tried[settings["recommended"]], tried["default"]
    most = {name: max(one["measured"][f"resident_{runs}_bytes"] for runs in ("first", "later")) for name, one in tried.items()}
    assert most[settings["recommended"]] <= most["default"]
    if settings["recommended"] == "default":
        assert min(most.values()) >= (most["default"] - TOLERANCE_BYTES) / (1 + TOLERANCE_SHARE)
    taken = measured(program)
    # A first region may be there since the session was loaded: it counts for runs in what is printed, and not in the heap here.
    is_shared = best["options"]["environment_arena"] is not None
    for key, value in best["measured"].items():
        if not (is_shared and key.startswith("heap")):
            assert are_close(taken[key], value), (key, taken, best)
    # An arena of the environment holds what it is predicted to hold.
    for name in ("shared_as_requested", "shared_first_region"):
        for key, value in tried[name]["predicted"].items():
            assert are_close(tried[name]["measured"][key], value), (name, key, tried[name])
    assert stock["options"]["environment_arena"] is None


if __name__ == "__main__":
    child(sys.argv[1])
