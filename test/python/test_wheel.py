"""The wheel, installed into an empty environment: the API, the command line, and what goes wrong."""

import json
import pathlib
import posixpath
import re
import signal
import subprocess
import sys
import tarfile
import time

import models
import pytest
import wheel

MODEL = models.ROOT / "test" / "models" / "unet_tiny_train.onnx"
SMALL = models.ROOT / "test" / "models" / "mlp_tiny_train.onnx"
GRAPH = models.ROOT / "test" / "cli" / "training_chain.json"

pytestmark = wheel.is_there


def test_the_main_job_gives_a_model_of_less_memory_with_the_same_bits(environment, tmp_path):
    found = environment.python(
        """
import numpy, onnx, onnxruntime, pickle, pathlib
model = onnx.load(sys.argv[1])
seen = []
result = remat_opt.optimize(model, "70%", **SEARCH, progress=seen.append)
moved = pickle.loads(pickle.dumps(result))
path = result.path
del result
kinds = {"tensor(float)": numpy.float32, "tensor(int64)": numpy.int64}
stock = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
random = numpy.random.default_rng(0)
feed = {i.name: (random.random(i.shape) if "float" in i.type else random.integers(0, 2, i.shape)).astype(kinds[i.type]) for i in stock.get_inputs()}
session = moved.session()
pairs = list(zip(stock.run(None, feed), session.run(None, feed)))
onnx.checker.check_model(moved.model)
moved.save("saved.onnx")
library = remat_opt.arena_library("other.so").read_bytes()
print(json.dumps({
    "same": all(numpy.array_equal(one, other) for one, other in pairs), "outputs": len(pairs),
    "peak": moved.report["peak_bytes"], "before": moved.report["baseline_peak_bytes"], "of": moved.report["baseline_of"],
    "measured": moved.report["measured"] is not None, "changed": moved.changed, "recomputes": len(moved.plan.recomputes),
    "is_gone": not path.exists(), "is_ours": library == pathlib.Path("libremat_arena.so").read_bytes(), "saved": sorted(p.name for p in pathlib.Path(".").iterdir()),
    "progress": len(seen), "has_result": [seen[0].has_result, any(now.has_result for now in seen)], "doing": seen[-1].doing, "best": max(s.peak_bytes or 0 for s in seen), "html": moved._repr_html_(),
}))""",
        MODEL,
        cwd=tmp_path,
    )
    assert found["same"]
    assert found["outputs"] > 1
    assert found["peak"] <= 0.7 * found["before"]
    assert found["of"] == "measured"
    assert found["measured"]
    assert found["changed"]
    assert found["recomputes"] > 0
    assert found["is_gone"]
    assert found["saved"] == ["libremat_arena.so", "other.so", "saved.onnx", "saved.onnx.arena"]
    assert found["is_ours"]
    assert found["progress"] > 1
    assert found["has_result"] == [False, True]
    assert found["best"] > 0
    assert "<svg" in found["html"]


def test_a_session_has_what_the_report_says_that_the_model_needs(environment):
    found = environment.python(
        """
import onnxruntime
result = remat_opt.optimize(sys.argv[1], "auto", level="basic", **SEARCH, settings=True)
options = onnxruntime.SessionOptions()
session = result.session(options)
needs = result.report["session"]
print(json.dumps([options.graph_optimization_level == onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    needs["enable_cpu_mem_arena"] == options.enable_cpu_mem_arena, needs["enable_mem_pattern"] == options.enable_mem_pattern,
    result.report["settings"]["recommended"] in [one["setting"] for one in result.report["settings"]["tried"]]]))""",
        MODEL,
    )
    assert all(found)


def test_the_program_and_the_module_are_one_command_line(environment, tmp_path):
    program = environment.run("remat-opt", "--help")
    module = environment.run("python", "-m", "remat_opt", "--help")
    assert program == module
    assert "Makes neural networks fit into less memory" in program
    out = tmp_path / "small.onnx"
    report = json.loads(environment.run("remat-opt", MODEL, "-o", out, *wheel.LIMITS, "--format", "json"))
    assert out.exists()
    assert report["target"] == "ort"
    assert report["measured"] is not None
    assert environment.run("remat-opt", "no-such-model.onnx", status=2) == ""


def test_models_are_inspected_verified_and_swept(environment, tmp_path):
    found = environment.python(
        """
import pickle
report = remat_opt.inspect(sys.argv[1])
result = remat_opt.optimize(sys.argv[1], "80%", **SEARCH, target="onnx", measure=False, page="optimized.html")
checked = remat_opt.verify(sys.argv[1], result.plan, page="verified.html")
front = remat_opt.sweep(sys.argv[1], ["90%", 0.8], **SEARCH, seed=1, page="front.html")
again = pickle.loads(pickle.dumps(front))
print(json.dumps({"inspect": report, "html": report._repr_html_(), "verify": checked, "chart": checked.chart[:4],
    "front": [point["budget"] for point in again["points"]], "drawing": "<svg" in again._repr_html_(), "plan": result.plan.peak_bytes}))""",
        SMALL,
        cwd=tmp_path,
    )
    assert all("mlp_tiny_train" in (tmp_path / f"{page}.html").read_text() for page in ("optimized", "verified", "front"))
    assert found["inspect"]["format"] == "remat-inspect/2"
    assert found["inspect"]["peak_bytes"] == max(moment["during"] for moment in found["inspect"]["timeline"])
    assert "<svg" in found["html"]
    assert found["verify"]["valid"]
    assert found["verify"]["peak_bytes"] == found["plan"]
    assert found["chart"] == "<svg"
    assert found["front"] == ["90%", "80%"]
    assert found["drawing"]


def test_models_come_as_bytes_and_as_exporters_give_them(environment):
    found = environment.python(
        """
import onnx, pathlib, types
data = pathlib.Path(sys.argv[1]).read_bytes()
exported = types.SimpleNamespace(model_proto=onnx.load(sys.argv[1]))
print(json.dumps([remat_opt.inspect(model)["peak_bytes"] for model in (sys.argv[1], data, exported)]))""",
        SMALL,
    )
    assert len(set(found)) == 1


def test_graphs_of_networkx_are_solved_and_their_batch_grows(environment):
    found = environment.python(
        """
import networkx
graph = networkx.DiGraph(name="chain")
for at in range(8):
    graph.add_node(("op", at), bytes=100, time=1 + at)
    if at:
        graph.add_edge(("op", at - 1), ("op", at))
for at in range(8, 15):
    graph.add_node(("op", at), bytes=100, time=2)
    graph.add_edge(("op", at - 1), ("op", at))
    graph.add_edge(("op", 14 - at), ("op", at))
problem = remat_opt.Problem.from_networkx(graph, size="bytes", duration="time")
plan = remat_opt.solve(problem, 0.6, **SEARCH)
same = remat_opt.solve(sys.argv[1], "60%", time_limit=600)
batch = remat_opt.max_batch(problem, memory=2000, time_limit=1)
print(json.dumps({"peak": plan.peak_bytes, "recomputes": plan.recomputes, "order": plan.order, "duration": plan.duration,
    "file": [same.peak_bytes, same.duration, same.certificate["bound"]], "valid": remat_opt.verify(problem, plan)["valid"],
    "without": batch["without"], "with": batch["with"], "html": plan._repr_html_()}))""",
        GRAPH,
    )
    assert found["recomputes"]
    assert len(found["order"]) == 15 + len(found["recomputes"])
    assert found["file"] == [4 << 20, 7300, 7300]
    assert found["valid"]
    assert found["with"] >= found["without"] > 0
    assert "recomputes" in found["html"]


def test_buffers_are_placed(environment):
    found = environment.python(
        """
import pickle
buffers = [(0, 2, 100), {"lower": 1, "upper": 3, "size": 50, "alignment": 64}, (2, 4, 100)]
placed = pickle.loads(pickle.dumps(remat_opt.place(buffers)))
given = remat_opt.place(buffers, [256, 64])
print(json.dumps([placed.offsets, placed.height, placed.load, placed.is_optimal, len(given.offsets), given["blocks"][0]["capacity_bytes"]]))"""
    )
    offsets, height, load, is_optimal, given, capacity = found
    assert offsets[1] % 64 == 0
    assert max(offset + size for offset, size in zip(offsets, (100, 50, 100), strict=True)) == height >= load == 150
    assert is_optimal
    assert (given, capacity) == (3, 256)


def test_errors_are_sorted_say_what_they_are_about_and_can_be_pickled(environment, tmp_path):
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"no model")
    found = environment.python(
        """
import pickle
def kind(call):
    try:
        call()
    except Exception as error:
        again = pickle.loads(pickle.dumps(error))
        assert str(again) == str(error), error
        assert type(again) is type(error)
        return [type(error).__name__, getattr(error, "kind", None), getattr(error, "op", None), sorted(getattr(error, "details", {})), str(error)]
graph = sys.argv[1]
plan = remat_opt.solve(graph, "60%", **SEARCH)
wrong = remat_opt.Plan(plan, steps=plan.steps[1:])
print(json.dumps([
    kind(lambda: remat_opt.solve(graph, 1000)),
    kind(lambda: remat_opt.inspect(sys.argv[2])),
    kind(lambda: remat_opt.inspect("nowhere.onnx")),
    kind(lambda: remat_opt.optimize(graph, budget="seven")),
    kind(lambda: remat_opt.optimize(3)),
    kind(lambda: remat_opt.verify(remat_opt.Problem.load(graph), wrong)),
    kind(lambda: remat_opt.place([(0, 2, 100), (1, 3, 100)], 150)),
    kind(lambda: remat_opt.place([(2, 0, 100)])),
    kind(lambda: remat_opt.optimize(graph, options=["--no-such-option"])),
    kind(lambda: remat_opt.solve(graph, solver="serach")),
]))""",
        GRAPH,
        broken,
    )
    infeasible, unreadable, missing, budget, no_model, violation, no_room, buffer, option, solver = found
    assert infeasible[:2] == ["InfeasibleError", "finding"]
    assert infeasible[2] in infeasible[4]
    assert "need_bytes" in infeasible[3]
    assert unreadable[:2] == missing[:2] == ["ModelError", "input"]
    assert budget[:2] == no_model[:2] == option[:2] == ["UsageError", "usage"]
    assert "budget" in budget[4]
    assert violation[0] == "VerificationError"
    assert "violations" in violation[3]
    assert no_room[0] == "InfeasibleError"
    assert buffer[0] == "ModelError"
    assert "line 2" in buffer[4]
    assert "search" in solver[4]


LONG = """
import time
plan = None
def progress(now):
    print("begun", flush=True)
try:
    remat_opt.solve(sys.argv[1], "30%", time_limit=600, solver="search", step_limit=10**12, progress=progress)
except KeyboardInterrupt:
    pass
print(json.dumps(remat_opt.place([(0, 1, 1)]).height))
"""


def test_ctrl_c_ends_a_call_within_a_second_and_the_next_call_works(environment, large):
    process = environment.start("python", "-c", "import json, sys, remat_opt\n" + LONG, large)
    assert process.stdout.readline() == "begun\n"
    process.send_signal(signal.SIGINT)
    begun = time.monotonic()
    out, err = process.communicate(timeout=60)
    # An interpreter that ends takes its time, too.
    assert time.monotonic() - begun < 10, err
    assert process.returncode == 0, err
    assert json.loads(out.splitlines()[-1]) == 1


@pytest.mark.parametrize("program", [["remat-opt"], ["python", "-m", "remat_opt"]], ids=["program", "module"])
def test_ctrl_c_ends_the_command_line_with_the_best_that_was_found(environment, large, tmp_path, program):
    plan = tmp_path / "plan.json"
    limits = ["--solver", "search", "--time-limit", "600s", "--step-limit", 10**12]
    process = environment.start(*program, large, "-b", "auto", "-o", plan, *limits)
    # The first line says that the search has begun.
    assert "plan" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert plan.exists()


def test_a_progress_function_ends_a_call_early_or_with_its_own_error(environment, large):
    found = environment.python(
        """
import threading
beats, is_over = [0], threading.Event()
def beat():
    while not is_over.wait(0.01):
        beats[0] += 1
threading.Thread(target=beat).start()
graph = remat_opt.Problem.load(sys.argv[1])
best = remat_opt.solve(graph, "auto", time_limit=600, solver="search", step_limit=10**12, progress=lambda now: now.peak_bytes is None)
during = beats[0]
is_over.set()
def fails(now):
    raise LookupError("stop")
try:
    remat_opt.solve(graph, "min", time_limit=600, solver="search", step_limit=10**12, progress=fails)
    raised = None
except LookupError as error:
    raised = str(error)
print(json.dumps([best.peak_bytes > 0, during > 0, raised]))""",
        large,
    )
    assert found == [True, True, "stop"]


def test_calls_of_several_threads_run_side_by_side_and_end_by_themselves(environment, large):
    found = environment.python(
        """
import threading
from concurrent.futures import ThreadPoolExecutor
graph = remat_opt.Problem.load(sys.argv[1])
# None goes on before all four are in the middle of their work, which is long enough that none is over before it was asked how far it is.
together = threading.Barrier(4)
def plan(place):
    met = []
    def progress(now):
        if not met:
            met.append(together.wait(timeout=600))
        # The first one is ended, and raises; nothing of that is the others' business.
        if place == 0:
            return False
        if place == 1:
            raise LookupError("stop")
    steps = 10**12 if place < 2 else 3_000_000
    try:
        found = remat_opt.solve(graph, "50%", time_limit=3600, solver="search", step_limit=steps, threads=1, progress=progress)
        return found["certificate"]["stop"]
    except (LookupError, remat_opt.LimitError) as error:
        return type(error).__name__
with ThreadPoolExecutor(4) as pool:
    print(json.dumps(list(pool.map(plan, range(4)))))""",
        large,
    )
    assert found[0] in ("cancelled", "LimitError"), found
    assert found[1] == "LookupError", found
    assert found[2] == found[3] and found[2] not in ("cancelled", "LimitError"), found


def test_calls_of_several_threads_give_what_each_asked_for(environment):
    found = environment.python(
        """
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(4) as pool:
    heights = list(pool.map(lambda size: remat_opt.place([(0, 2, size), (1, 3, size)]).height, range(1, 20)))
print(json.dumps(heights))"""
    )
    assert found == [2 * size for size in range(1, 20)]


def test_a_child_of_a_fork_calls_too(environment):
    found = environment.python(
        """
import multiprocessing
remat_opt.place([(0, 1, 1)])
with multiprocessing.get_context("fork").Pool(2) as pool:
    print(json.dumps([placed.height for placed in pool.map(remat_opt.place, [[(0, 1, size)] for size in (3, 4, 5)])]))"""
    )
    assert found == [3, 4, 5]


def test_the_wheel_is_typed_and_holds_no_debug_information(environment):
    import zipfile

    with zipfile.ZipFile(wheel.BUILT[-1]) as content:
        names = content.namelist()
        native = next(info for info in content.infolist() if "_native" in info.filename and info.filename.endswith(".so"))
        metadata = content.read(next(name for name in names if name.endswith("METADATA"))).decode()
        library = content.read(native)
    assert {"remat_opt/py.typed", "remat_opt/_native.pyi"} <= set(names)
    assert "abi3" in native.filename
    assert b"\0.debug_info\0" not in library
    for line in ("Name: remat-opt", "License-Expression: Apache-2.0", "Provides-Extra: proofs"):
        assert line in metadata
    assert all(pathlib.PurePosixPath(name).parts[0].startswith("remat_opt") for name in names)


def test_the_archive_of_sources_holds_every_file_that_its_sources_include(tmp_path):
    maturin = pathlib.Path(sys.executable).with_name("maturin")
    subprocess.run([maturin, "sdist", "--out", tmp_path], cwd=models.ROOT, check=True)
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as archive:
        names = set(archive.getnames())
        sources = {name: archive.extractfile(name).read().decode() for name in names if name.endswith(".rs")}
    included = re.compile(r'include_(?:str|bytes)!\("([^"]+)"\)')
    wanted = {
        posixpath.normpath(posixpath.join(posixpath.dirname(name), path))
        for name, text in sources.items()
        if "/tests/" not in name and not name.endswith("_tests.rs")
        for path in included.findall(text.split("#[cfg(test)]")[0])
    }
    assert any(path.endswith("page/assets/page.js") for path in wanted)
    assert not wanted - names


def test_a_file_that_was_written_has_a_session_with_its_plan(environment, tmp_path):
    found = environment.python(
        """
import onnxruntime
result = remat_opt.optimize(sys.argv[1], "70%", **SEARCH)
result.save("small.onnx")
options = onnxruntime.SessionOptions()
session = remat_opt.session("small.onnx", options)
feed = {i.name: onnxruntime.OrtValue.ortvalue_from_shape_and_type(i.shape, {"tensor(float)": "float32", "tensor(int64)": "int64"}[i.type]).numpy() * 0 for i in session.get_inputs()}
session.run(None, feed)
print(json.dumps([options.intra_op_num_threads, options.get_session_config_entry("remat.arena.plan"),
    session.memory().runs, session.memory().missed, len(remat_opt.session(sys.argv[1]).get_outputs())]))""",
        SMALL,
        cwd=tmp_path,
    )
    threads, plan, runs, missed, outputs = found
    assert threads == 0
    assert plan == str(tmp_path / "small.onnx.arena")
    assert (runs, missed) == (1, 0)
    assert outputs > 0


def test_what_is_printed_of_a_front_is_a_few_lines(environment):
    found = environment.python(
        """
front = remat_opt.sweep(sys.argv[1], ["90%", "80%"], **SEARCH, seed=1)
print(json.dumps([str(front), json.loads(front.json()) == front]))""",
        SMALL,
    )
    assert len(found[0].splitlines()) == 3
    assert "90%" in found[0]
    assert found[1]


def test_every_command_that_takes_dimensions_fixes_them(environment):
    found = environment.python(
        """
def refused(command, *arguments, **named):
    try:
        return command(sys.argv[1], *arguments, **named)
    except remat_opt.RematError as error:
        return str(error)
fixed = {"fix_dims": {"bunch": 4}}
said = [refused(remat_opt.inspect, **fixed), refused(remat_opt.sweep, "80%", **fixed),
    refused(remat_opt.verify, "plan.json", **fixed), refused(remat_opt.max_batch, "1MiB", "batch", **fixed)]
two = refused(remat_opt.inspect, dims={"batch": 8}, fix_dims={"batch": 4})
report = remat_opt.inspect(sys.argv[1], fix_dims={"batch": 4})
print(json.dumps({"said": [str(one) for one in said], "two": two, "peak": report["peak_bytes"],
    "by_name": remat_opt.inspect(sys.argv[1], dims={"batch": 4}, fix_dims="batch")["peak_bytes"]}))""",
        models.ROOT / "test" / "models" / "features" / "dynamic_batch.onnx",
    )
    assert found["peak"] == found["by_name"] > 0
    assert "cannot be both" in found["two"]
    assert all("bunch" in found["said"][place] for place in (0, 1, 3)), found["said"]


def test_commands_bound_all_stated_shapes(environment):
    found = environment.python(
        """
bound = remat_opt.inspect(sys.argv[1], shapes={"batch": range(1, 65)})["range"]["peak_bound_bytes"]
largest = remat_opt.inspect(sys.argv[1], dims={"batch": 64})["peak_bytes"]
front = remat_opt.sweep(sys.argv[1], ["99%"], **SEARCH, shapes="batch=1..8")
print(json.dumps([bound, largest, front["points"][0]["range"]["budget"]["holds"]]))""",
        models.ROOT / "test" / "models" / "features" / "dynamic_batch.onnx",
    )
    assert found[0] == found[1] > 0
    assert found[2] == 8
