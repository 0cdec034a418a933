"""Results that a plan moves to a second memory, in ONNX Runtime: the same bits, the memory that is promised, whatever happens to a run."""

import json
import os
import subprocess
import sys
import threading

import models
import need
import numpy as np
import onnxruntime as ort
import pytest
import wheel
from arena import Arena, bits
from runtime import inputs

UNET = models.ROOT / "test" / "models" / "unet_tiny_train.onnx"
MOVE = ["--no-remat", "--no-arena-plan", "--step-limit", "300", "--time-limit", "10m", "--format", "json"]
FEATURES = (
    "contrib_operators dynamic_batch half_precision if_captures if_captures_view if_nested layer_norm loop_captures lstm "
    "max_pool_indices names_like_clones output_is_source output_read_later split top_k views zero_size"
).split()
"""Models that have something to move, and something special."""


@pytest.fixture(scope="module")
def moved(remat_opt, tmp_path_factory):
    """A model whose results move, and the report."""
    made = {}

    def make(model, mode="dma", budget="40%"):
        key = model, mode, budget
        if key not in made:
            out = tmp_path_factory.mktemp("pages") / "out.onnx"
            run = remat_opt(model, "-o", out, "--paging", mode, "--budget", budget, *MOVE)
            assert run.returncode == 0, run.stderr
            made[key] = out, json.loads(run.stdout)
        return made[key]

    return make


@pytest.fixture(scope="module")
def unet():
    """The original, what it is fed, and what it computes."""
    session = ort.InferenceSession(str(UNET), providers=["CPUExecutionProvider"])
    feed = inputs(session, {})
    return feed, bits(session.run(None, feed))


def session(path, folder=None):
    """A session as the report says."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    if folder is not None:
        options.add_session_config_entry("remat.paging.folder", str(folder))
    options.register_custom_ops_library(str(library(path)))
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def library(path):
    return path.with_name("libremat_arena.so")


@pytest.mark.parametrize("mode", ["sync", "dma"])
def test_results_move_and_the_peak_is_the_promised_one(moved, unet, mode):
    out, report = moved(UNET, mode)
    assert report["second_memory"]["page_ins"] > 0
    assert report["outputs"] == "bit-identical"
    assert any("`--paging`" in hint for hint in report["less"])
    assert os.path.samefile(report["pages_library"], library(out))
    assert report["measured"]["after"]["arena_off"] <= 1.01 * report["predicted_peak_bytes"] + 65_536
    feed, expected = unet
    runner, counts = session(out), Arena(library(out))
    before = counts.figures()
    for _ in range(3):
        assert bits(runner.run(None, feed)) == expected
    after = counts.figures()
    paged_out, paged_in = (after[name] - before[name] for name in ("paged_out_bytes", "paged_in_bytes"))
    assert 0 < paged_out <= paged_in and paged_out % 3 == paged_in % 3 == 0
    # Each run takes away what it moved.
    assert after["second_memory_bytes"] == before["second_memory_bytes"]
    assert after["most_second_memory_bytes"] * 6 >= paged_out


@pytest.mark.parametrize("name", FEATURES)
def test_models_with_something_special_keep_their_bits(remat_opt, tmp_path, name):
    model = models.ROOT / "test" / "models" / "features" / f"{name}.onnx"
    out = tmp_path / "out.onnx"
    planned, run_with = (["--dim", "batch=2"], {"batch": 3}) if name == "dynamic_batch" else ([], {})
    # These networks are so small that nothing is gained.
    run = remat_opt(model, "-o", out, "--paging", "sync", "--budget", "min", "--force", *planned, *MOVE)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["second_memory"]["page_ins"] > 0
    original = ort.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    feed = inputs(original, run_with)
    assert bits(session(out).run(None, feed)) == bits(original.run(None, feed))


def test_sessions_and_their_runs_do_not_mix_pages(moved, unet):
    out, _ = moved(UNET)
    feed, expected = unet
    runners = [session(out) for _ in range(2)]
    wrong = []

    def work(runner, scale):
        scaled = {name: value * np.float32(scale) if value.dtype == np.float32 else value for name, value in feed.items()}
        first = bits(runner.run(None, scaled))
        for _ in range(100 if need.NIGHTLY else 12):
            if bits(runner.run(None, scaled)) != first or scale == 1 and first != expected:
                wrong.append(scale)

    threads = [threading.Thread(target=work, args=(runner, scale)) for runner in runners for scale in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_options_may_be_those_of_several_sessions(moved, unet):
    out, _ = moved(UNET)
    feed, expected = unet
    options = ort.SessionOptions()
    for _ in range(2):
        options.register_custom_ops_library(str(library(out)))
        runner = ort.InferenceSession(str(out), options, providers=["CPUExecutionProvider"])
        assert bits(runner.run(None, feed)) == expected


def test_a_run_that_ends_early_leaves_nothing_behind(moved, unet):
    out, _ = moved(UNET)
    feed, expected = unet
    runner, counts = session(out), Arena(library(out))
    assert bits(runner.run(None, feed)) == expected
    held = counts.figures()["second_memory_bytes"]
    for delay in (0.001, 0.003, 0.006, 0.012, 0.02):
        stop = ort.RunOptions()
        timer = threading.Timer(delay, lambda stop=stop: setattr(stop, "terminate", True))
        timer.start()
        try:
            runner.run(None, feed, stop)
        except Exception as error:  # noqa: BLE001
            assert "terminate" in str(error)
        timer.join()
    assert bits(runner.run(None, feed)) == expected
    # What a stopped run left goes with the session at the latest.
    del runner
    assert counts.figures()["second_memory_bytes"] <= held


def test_a_folder_that_takes_no_file_fails_the_run_and_is_named(moved, unet, tmp_path):
    out, _ = moved(UNET)
    feed, expected = unet
    runner = session(out, folder=tmp_path / "missing")
    with pytest.raises(Exception, match="missing"):
        runner.run(None, feed)
    (tmp_path / "missing").mkdir()
    assert bits(runner.run(None, feed)) == expected
    assert not list((tmp_path / "missing").iterdir()), "the file has no name"


def test_a_disk_that_is_full_fails_the_run(moved, unet):
    """The largest file that the process may write is smaller than what leaves."""
    out, _ = moved(UNET)
    code = """
import pathlib, resource, signal, sys
sys.path.insert(0, sys.argv[2])
import test_pages
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
import onnxruntime, runtime
session = test_pages.session(pathlib.Path(sys.argv[1]))
feed = runtime.inputs(onnxruntime.InferenceSession(str(test_pages.UNET)), {})
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
try:
    session.run(None, feed)
except Exception as error:
    assert "second memory" in str(error) and "cannot write" in str(error), error
else:
    raise SystemExit("the run did not fail")
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
session.run(None, feed)
"""
    tests = models.ROOT / "test" / "python"
    ended = subprocess.run([sys.executable, "-c", code, out, tests], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


@wheel.is_there
def test_sessions_of_the_package_have_the_library(environment, tmp_path):
    """With a plan of memory, without one, and as a loadable form."""
    moved = ["--paging", "dma", "--no-remat", "--budget", "40%", *wheel.LIMITS]
    environment.run("remat-opt", UNET, "-o", tmp_path / "planned.onnx", *moved)
    environment.run("remat-opt", UNET, "-o", tmp_path / "plain.onnx", "--no-arena-plan", *moved)
    environment.run("remat-opt", UNET, "-o", tmp_path / "form", "--process", *moved)
    code = """
import numpy, onnxruntime
stock = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
feed = {one.name: numpy.random.default_rng(0).random(one.shape, numpy.float32) for one in stock.get_inputs()}
expected = [output.tobytes() for output in stock.run(None, feed)]
same, counts = [], []
for path in sys.argv[2:]:
    session = remat_opt.session(path, providers=["CPUExecutionProvider"])
    same.append([output.tobytes() for output in session.run(None, feed)] == expected)
    counts.append(session.memory())
moved = [None if one is None else [one.missed, one.paged_out_bytes > 0] for one in counts]
print(json.dumps([same, moved]))
"""
    found = environment.python(code, UNET, *(tmp_path / name for name in ("planned.onnx", "plain.onnx", "form")))
    assert found == [[True, True, True], [[0, True], None, [0, True]]]


def test_a_session_without_the_library_says_what_it_lacks(moved):
    out, _ = moved(UNET)
    with pytest.raises(Exception, match=r"com\.remat"):
        ort.InferenceSession(str(out), providers=["CPUExecutionProvider"])
