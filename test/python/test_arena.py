"""A written file and the plan of its memory: a session with two settings obeys, and no wrong bit comes of whatever else happens."""

import contextlib
import gc
import json
import pathlib
import subprocess
import sys
import threading
import time

import models
import need
import numpy as np
import onnx
import onnxruntime as ort
import pytest
from arena import Arena, Model, bits, options

# The runtime chooses where there are none.
TRIED = (1, 0, 2, 3, 4, 16) if need.NIGHTLY else (1, 0, 3)
SESSIONS = 500 if need.NIGHTLY else 100
SMALL = models.ROOT / "test" / "models" / "mlp_tiny_train.onnx"
OTHER = models.ROOT / "test" / "models" / "unet_tiny_train.onnx"


@pytest.fixture(scope="module")
def planned(remat_opt, tmp_path_factory):
    """Plans the memory of a model: the written file, its plan, the library, and the report."""
    made = {}

    def plan(model, *more):
        if (model, more) not in made:
            out = tmp_path_factory.mktemp("arena") / "out.onnx"
            arguments = ["--step-limit", "300", "--time-limit", "10m", "--format", "json", *more]
            run = remat_opt(model, "-o", out, *arguments)
            if "allocates in another order each time" in run.stderr:
                made[model, more] = None
            else:
                assert run.returncode == 0, run.stderr
                made[model, more] = out, json.loads(run.stdout)
        if made[model, more] is None:
            pytest.skip("the runtime orders the nodes of this model differently each time that it loads it")
        return made[model, more]

    return plan


def alone(test):
    """Runs a test in a process of its own: figures are counted by process."""
    code = f"import sys; sys.path.insert(0, sys.argv[1]); import test_arena; test_arena.{test.__name__}(*sys.argv[2:])"

    def run(*arguments):
        ended = subprocess.run(
            [sys.executable, "-c", code, str(models.ROOT / "test" / "python"), *map(str, arguments)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stderr

    return run


def is_followed(library, runs):
    figures = Arena(library).figures()
    assert figures["runs"] == runs
    assert figures["placed"] > 0
    assert (figures["missed"], figures["refused"], figures["planned_outside"]) == (0, 0, 0), figures
    return figures


def runs_follow(path, plan, library, threads):
    model = Model(path, options(library, plan, int(threads)), threads=int(threads))
    for _ in range(3):
        assert bits(model.run()) == model.expected
    assert is_followed(library, 3)["most_blocks"] == 1


def is_exact(out, report, threads):
    arena = report["arena_plan"]
    alone(runs_follow)(out, arena["file"], arena["library"], threads)
    predicted = arena["block_bytes"] + arena["outside_bytes"]
    # The code of kernels is read from disk in the first run.
    assert arena["resident_first_bytes"] <= 1.02 * predicted + 3_000_000, arena


@pytest.mark.parametrize("threads", TRIED)
@pytest.mark.parametrize("network", models.OWN + models.LIGHTEST, ids=lambda path: path.stem)
def test_every_run_of_a_model_as_it_came_follows_the_plan(network, planned, threads):
    is_exact(*planned(network, "--budget", "none"), threads)


@pytest.mark.parametrize("threads", TRIED)
@pytest.mark.parametrize("own", models.OWN, ids=lambda path: path.stem)
def test_every_run_of_a_written_file_follows_the_plan(own, planned, threads):
    is_exact(*planned(own), threads)


@pytest.mark.parametrize("name", ["if_captures", "if_nested", "loop_captures", "loop_shadows", "lstm", "external_data"])
def test_bodies_of_control_flow_follow_the_plan(name, planned):
    path = models.ROOT / "test" / "models" / "features" / f"{name}.onnx"
    is_exact(*planned(path, "--budget", "none"), 1)


def shapes_change(path, plan, library):
    sessions = {batch: Model(path, dims={"batch": batch}) for batch in (1, 2, 3, 5, 40)}
    chosen = ort.InferenceSession(str(path), options(library, plan), providers=["CPUExecutionProvider"])
    for batch in (1, 5, 3, 2, 5, 1):
        assert bits(chosen.run(None, sessions[batch].feed)) == sessions[batch].expected
    assert Arena(library).figures()["missed"] == 0
    # The plan is not for this one; those after it are followed again.
    for batch in (40, 3, 1):
        assert bits(chosen.run(None, sessions[batch].feed)) == sessions[batch].expected
        missed = Arena(library).figures()["missed"]
        assert missed > 0 if batch == 40 else missed == before
        before = missed


def test_one_plan_is_for_every_shape_and_others_have_their_bits(planned):
    path = models.ROOT / "test" / "models" / "features" / "dynamic_batch.onnx"
    out, report = planned(path, "--budget", "none", "--shapes", "batch=1..5")
    words = alone(shapes_change)(out, report["arena_plan"]["file"], report["arena_plan"]["library"])
    is_said_once(words, "batch = 1..5")


def outputs_are_held(path, plan, library):
    model = Model(path, options(library, plan))
    held, before = [], None
    for _ in range(6):
        before = model.run()
        held = [*held[-2:], before]
        assert all(bits(outputs) == model.expected for outputs in held)
    del before
    assert is_followed(library, 6)["most_blocks"] <= 4
    # Outputs may outlive their session, whose other memory is given back.
    del model.session
    gc.collect()
    assert all(bits(outputs) == model.expected for outputs in held)
    held.clear()
    gc.collect()
    assert Arena(library).figures()["blocks"] == 0


def test_outputs_may_be_held_and_blocks_go_with_the_session(planned):
    out, report = planned(SMALL)
    alone(outputs_are_held)(out, report["arena_plan"]["file"], report["arena_plan"]["library"])


def sessions_without_weights_come_and_go(path, plan, library):
    # Nothing that the runtime allocates shows that such a session is gone.
    expected = Model(path)
    for _ in range(SESSIONS):
        session = ort.InferenceSession(str(path), options(library, plan), providers=["CPUExecutionProvider"])
        outputs = session.run(None, expected.feed)
        assert bits(outputs) == expected.expected
        del session, outputs
        gc.collect()
        assert Arena(library).figures()["blocks"] <= 1
    is_followed(library, SESSIONS)
    # That of the last one goes when nobody used it for a while.
    while Arena(library).figures()["blocks"] > 0:
        time.sleep(0.05)


@pytest.fixture(scope="module")
def without_weights(tmp_path_factory):
    path = tmp_path_factory.mktemp("without_weights") / "model.onnx"
    shape = [1 << 18]
    nodes = [
        onnx.helper.make_node(op, inputs, outputs)
        for op, inputs, outputs in [("Mul", ["x", "y"], ["a"]), ("Exp", ["a"], ["b"]), ("Add", ["a", "b"], ["z"])]
    ]
    values = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name in "xyz"]
    graph = onnx.helper.make_graph(nodes, "without_weights", values[:2], values[2:])
    opset = [onnx.helper.make_opsetid("", 17)]
    onnx.save(onnx.helper.make_model(graph, ir_version=8, opset_imports=opset), path)
    return path


def test_blocks_of_sessions_without_weights_go_with_them(planned, without_weights):
    out, report = planned(without_weights, "--budget", "none")
    arena = report["arena_plan"]
    assert alone(sessions_without_weights_come_and_go)(out, arena["file"], arena["library"]) == ""


def sessions_run_at_one_time(first, first_plan, second, second_plan, library):
    # Both are registered before either session is made.
    chosen = [options(library, plan) for plan in (first_plan, second_plan)]
    sessions = [Model(path, one) for path, one in zip((first, second), chosen, strict=True)]
    wrong = []

    def work(model, holds):
        held = []
        for _ in range(8):
            outputs = model.run()
            if bits(outputs) != model.expected:
                wrong.append("an output")
            held = [*held[-2:], outputs] if holds else []
            if any(bits(one) != model.expected for one in held):
                wrong.append("a held output")

    jobs = [(model, holds) for model in sessions for holds in (False, True, False, True)]
    workers = [threading.Thread(target=work, args=job) for job in jobs]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong
    is_followed(library, 64)


def test_two_sessions_of_four_threads_each_follow_their_plans(planned):
    files = []
    for model in (SMALL, OTHER):
        out, report = planned(model)
        files += [out, report["arena_plan"]["file"]]
    alone(sessions_run_at_one_time)(*files, report["arena_plan"]["library"])


def sessions_load_at_one_time(first, first_plan, second, second_plan, library):
    plain = [Model(path) for path in (first, second)]
    jobs = [(path, plan, model) for path, plan, model in zip((first, second), (first_plan, second_plan), plain, strict=True)]
    start = threading.Barrier(len(jobs) * 2)
    wrong, sessions = [], []

    def work(path, plan, model, has_plan):
        try:
            start.wait()
            chosen = options(library, plan) if has_plan else ort.SessionOptions()
            session = ort.InferenceSession(str(path), chosen, providers=["CPUExecutionProvider"])
            sessions.append(session)
            for _ in range(3):
                if bits(session.run(None, model.feed)) != model.expected:
                    wrong.append("an output")
        except Exception as error:  # A thread's error would be lost.
            wrong.append(error)

    for _ in range(10):
        workers = [threading.Thread(target=work, args=(*job, plans)) for job in jobs for plans in (True, False)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    assert not wrong
    # Half of the sessions have a plan, and each follows its own.
    figures = is_followed(library, 10 * len(jobs) * 3)
    assert figures["most_blocks"] == 10 * len(jobs), figures
    names = [Arena(library).figures(at) for at in range(10 * len(jobs))]
    assert sorted({one["block_bytes"] for one in names}) == sorted({one["block_bytes"] for one in names if one["runs"] == 3})
    assert all(one["runs"] == 3 and one["missed"] == one["refused"] == 0 for one in names), names


def test_sessions_that_load_at_the_same_instant_get_their_own_plans(planned):
    files = []
    for model in (SMALL, OTHER):
        out, report = planned(model)
        files += [out, report["arena_plan"]["file"]]
    alone(sessions_load_at_one_time)(*files, report["arena_plan"]["library"])


def anything_is_survived(path, plan, library, kind):
    model = Model(path, options(library, plan))
    expected = bits(model.run())
    assert expected == model.expected
    if kind == "aborted":
        for _ in range(5):
            stop = ort.RunOptions()
            stop.terminate = True
            with contextlib.suppress(Exception):
                model.run(stop)
            assert bits(model.run()) == expected
        assert Arena(library).figures()["missed"] == 0
    elif kind == "parallel":
        chosen = options(library, plan)
        chosen.execution_mode = ort.ExecutionMode.ORT_PARALLEL
        chosen.inter_op_num_threads = 4
        parallel = Model(path, chosen)
        for _ in range(5):
            assert bits(parallel.run()) == parallel.expected
    elif kind == "same options":
        chosen = options(library, plan)
        both = [Model(path, chosen) for _ in range(2)]
        for one in both * 3:
            assert bits(one.run()) == expected


@pytest.mark.parametrize("kind", ["aborted", "parallel", "same options"])
def test_whatever_happens_no_bit_is_wrong(planned, kind):
    out, report = planned(SMALL)
    alone(anything_is_survived)(out, report["arena_plan"]["file"], report["arena_plan"]["library"], kind)


def a_plan_is_a_hint(path, plan, library, threads=1):
    model = Model(path, options(library, plan, int(threads)), threads=int(threads))
    for _ in range(3):
        assert bits(model.run()) == model.expected
    figures = Arena(library).figures()
    assert figures["missed"] + figures["refused"] > 0


def changed(plan, tmp_path, change):
    """The first of the plans, its buffers changed."""
    lines = plan.read_text().splitlines()
    head = next(at for at, line in enumerate(lines) if line.startswith("plan "))
    count = int(lines[head].split()[2])
    start = next(at for at in range(head + 1, len(lines)) if not lines[at].startswith("input "))
    for at in range(start, start + count):
        fields = lines[at].split()
        change(fields, at - start)
        lines[at] = " ".join(fields)
    path = tmp_path / "changed.arena"
    path.write_text("\n".join(lines[: start + count]) + "\n")
    return path


def ended(fields, _):
    fields[2] = str(int(fields[1]) + 1)


def swapped(fields, _):
    fields[:] = [*fields[:4]] if fields[-1] == "output" else [*fields, "output"]


def sized(fields, place):
    if place % 7 == 3:
        fields[0] = "64" if fields[0] != "64" else "128"


@pytest.mark.parametrize("change", [ended, sized], ids=["all end at once", "other sizes"])
def test_a_wrong_plan_costs_memory_and_no_bit(planned, tmp_path, change):
    out, report = planned(SMALL)
    arena = report["arena_plan"]
    wrong = changed(pathlib.Path(arena["file"]), tmp_path, change)
    alone(a_plan_is_a_hint)(out, wrong, arena["library"])


def is_said_once(words, *parts):
    assert words.count("does not fit") == 1, words
    for part in parts:
        assert part in words


def test_a_plan_of_another_file_says_so_once(planned):
    out, report = planned(SMALL)
    other, _ = planned(OTHER)
    arena = report["arena_plan"]
    words = alone(a_plan_is_a_hint)(other, arena["file"], arena["library"])
    model = pathlib.Path(arena["file"]).read_text().splitlines()[1].removeprefix("model ")
    is_said_once(words, arena["file"], model, "inputs ")


def runs_are_right(path, plan, library):
    model = Model(path, options(library, plan))
    for _ in range(3):
        held = model.run()
        assert bits(held) == model.expected
    assert np.all(bits(held) == model.expected)


def test_outputs_that_the_plan_does_not_call_so_have_their_bits(planned, tmp_path):
    out, report = planned(SMALL)
    arena = report["arena_plan"]
    wrong = changed(pathlib.Path(arena["file"]), tmp_path, swapped)
    alone(runs_are_right)(out, wrong, arena["library"])


@pytest.mark.parametrize(
    ("line", "text", "why"),
    [(1, "remat-arena 1", "expected `remat-arena 2`"), (5, "plan threads", "expected `plan"), (7, "x", "line 7")],
)
def test_a_malformed_plan_refuses_the_session_and_names_the_line(planned, tmp_path, line, text, why):
    _, report = planned(SMALL)
    lines = pathlib.Path(report["arena_plan"]["file"]).read_text().splitlines()
    lines[line - 1] = text
    path = tmp_path / "malformed.arena"
    path.write_text("\n".join(lines))
    with pytest.raises(Exception, match=f"line {line}") as raised:
        options(report["arena_plan"]["library"], path)
    assert why in str(raised.value)


def test_a_file_of_plans_above_16_mib_is_refused(planned, tmp_path):
    _, report = planned(SMALL)
    path = tmp_path / "large.arena"
    # Well-formed lines that never end.
    head = pathlib.Path(report["arena_plan"]["file"]).read_text()
    path.write_text(head + "\n" * ((16 << 20) + 1 - len(head)))
    with pytest.raises(Exception, match="16777217 bytes; a file of plans has at most 16777216"):
        options(report["arena_plan"]["library"], path)
