"""Whole processes: what they take is promised from their first to their last instruction, and held to it by a control group of
the kernel; forms that take little; a limit that is kept or refused with the ledger that forbids it."""

import json
import shutil

import cgroup
import models
import numpy as np
import onnx
import process_lab
import pytest
import wheel
from onnx import TensorProto, helper, numpy_helper

pytestmark = wheel.is_there

HERE = models.ROOT / "test" / "python"
WIDTH, LAYERS = 1024, 8
"""33 MB of weights."""
RUNS = 20
FILES = [
    *("libremat_arena.so", "model.onnx", "model.onnx.arena", "portable.onnx", "portable.onnx.arena", "process.remat"),
    "weights.data",
]


@pytest.fixture(scope="session")
def network(tmp_path_factory):
    """A stack of matrices with weights at random: equal ones would be packed once."""
    random = np.random.default_rng(0)
    nodes, weights, value = [], [], "x"
    for layer in range(LAYERS):
        weight = random.standard_normal((WIDTH, WIDTH), dtype=np.float32) / np.float32(WIDTH**0.5)
        weights.append(numpy_helper.from_array(weight, f"w{layer}"))
        out = "y" if layer == LAYERS - 1 else f"z{layer}"
        nodes += [
            helper.make_node("MatMul", [value, f"w{layer}"], [f"m{layer}"]),
            helper.make_node("Relu", [f"m{layer}"], [out]),
        ]
        value = out
    shape = ["b", WIDTH]
    graph = helper.make_graph(
        nodes,
        "stack",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        weights,
    )
    path = tmp_path_factory.mktemp("process") / "stack.onnx"
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, str(path), save_as_external_data=True, location="stack.data", size_threshold=1024)
    return path


@pytest.fixture(scope="session")
def form(environment, network):
    """The loadable form of that network, and the report of the program that wrote it."""
    folder = network.with_suffix(".form")
    said = environment.run("remat-opt", network, "-o", folder, "--process", "--dim", "b=1", "--format", "json", *wheel.LIMITS)
    return folder, json.loads(said)


def copied(form, tmp_path, manifest):
    """The form with another manifest."""
    folder = tmp_path / "form"
    shutil.copytree(form[0], folder)
    path = folder / "process.remat"
    path.write_text(manifest(path.read_text()))
    return folder


START = """
import warnings
import numpy, onnxruntime
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
given = {"x": numpy.random.default_rng(1).random([1, 1024], numpy.float32)}
stock = onnxruntime.InferenceSession(sys.argv[2], options, providers=["CPUExecutionProvider"]).run(None, given)
def same(path):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        session = remat_opt.session(path)
    return numpy.array_equal(session.run(None, given)[0], stock[0]), [str(one.message) for one in said]
"""


def test_the_form_takes_less_than_the_original_in_every_ledger_and_has_its_bits(environment, form, network):
    folder, report = form
    assert sorted(path.name for path in folder.iterdir()) == FILES
    before, after = report["form"]["original"], report["form"]["measured"]
    weights = 4 * LAYERS * WIDTH * WIDTH
    assert before["heap_weights_bytes"] == weights
    assert after["heap_weights_bytes"] < 1 << 20
    assert after["packed_weights_bytes"] >= weights
    assert after["graph_bytes"] <= before["graph_bytes"]
    assert report["form"]["plain_copies_bytes"] == weights
    assert environment.python(START + "print(json.dumps(same(sys.argv[1])))", folder, network) == [True, []]


def test_another_version_or_processor_takes_the_portable_model_and_says_so(environment, form, network, tmp_path):
    other = copied(form, tmp_path / "version", lambda text: text.replace("runtime ", "runtime 9."))
    is_same, (said,) = environment.python(START + "print(json.dumps(same(sys.argv[1])))", other, network)
    assert is_same
    assert "portable model is taken, because it was made for ONNX Runtime 9." in said
    other = copied(form, tmp_path / "processor", lambda text: text.replace(" sse4_1", " !sse4_1").replace(" !!", " "))
    is_same, (said,) = environment.python(START + "print(json.dumps(same(sys.argv[1])))", other, network)
    assert is_same
    assert "made for a processor with" in said


def test_a_form_with_a_file_that_was_cut_is_refused(environment, form, tmp_path):
    folder = copied(form, tmp_path, lambda text: text)
    with open(folder / "weights.data", "r+b") as file:
        file.truncate(4096)
    code = """
try:
    remat_opt.session(sys.argv[1])
except remat_opt.ModelError as error:
    print(json.dumps(str(error)))"""
    assert "`weights.data` is not the file of" in environment.python(code, folder)
    (folder / "process.remat").unlink()
    assert "is no loadable form" in environment.python(code, folder)


def test_a_process_in_python_lives_within_its_promise_and_not_with_less_than_must_be_there(environment, form, network):
    if (why := cgroup.why_not()) is not None:
        pytest.skip(why)
    folder, report = form
    must, may = process_lab.promise(folder, "python")
    weights = 4 * LAYERS * WIDTH * WIDTH
    ledgers = report["form"]["measured"]
    load = max(ledgers["loading_bytes"], ledgers["run_bytes"] + ledgers["outputs_bytes"])
    assert must + may <= 1.15 * (weights + load) + process_lab.OWN["python"]
    python = environment.folder / "python"
    kept = process_lab.held(folder, int((must + may) * 1.02) + process_lab.MB, {"b": 1}, RUNS, python)
    assert kept.status == 0, (kept.status, kept.err, must, may)
    assert json.loads(kept.out)["bits"] == [process_lab.bits_of(network, {"b": 1})]
    less = process_lab.held(folder, int(must * 0.9), {"b": 1}, RUNS, python)
    assert less.status != 0, (less.out, must)


def test_a_program_in_c_loads_the_form_within_its_promise(form, tmp_path):
    folder, _ = form
    program = process_lab.built(HERE / "process.c", tmp_path)
    if (why := cgroup.why_not()) is not None:
        pytest.skip(why)
    must, may = process_lab.promise(folder, "c")
    load = form[1]["form"]["measured"]["loading_bytes"]
    assert must + may <= 1.15 * (4 * LAYERS * WIDTH * WIDTH + load) + process_lab.OWN["c"]
    arguments = [program, folder, RUNS, "x", "y", WIDTH]
    most_read = process_lab.most_read(folder, RUNS)
    kept = cgroup.run(int((must + may) * 1.02) + process_lab.MB, arguments, most_read)
    assert kept.status == 0, (kept.status, kept.err, must, may)
    assert kept.out.endswith("optimized\n")
    assert cgroup.run(int(must * 0.9), arguments, most_read).status != 0
    other = copied(form, tmp_path, lambda text: text.replace("runtime ", "runtime 9."))
    elsewhere = cgroup.run(1 << 30, [program, other, 2, "x", "y", WIDTH], most_read)
    assert elsewhere.out.split()[0] == kept.out.split()[0], elsewhere.err
    assert "made for ONNX Runtime 9." in elsewhere.out


def test_weights_of_four_times_the_room_that_they_have_run(form, tmp_path):
    """What the promise has for mapped weights is cut to a quarter of them."""
    program = process_lab.built(HERE / "process.c", tmp_path)
    if (why := cgroup.why_not()) is not None:
        pytest.skip(why)
    folder, _ = form
    limit = sum(process_lab.promise(folder, "c")) - 3 * LAYERS * WIDTH * WIDTH
    ended = cgroup.run(limit, [program, folder, 3, "x", "y", WIDTH], process_lab.most_read(folder, 3))
    assert ended.status == 0, (ended.status, ended.err, limit)


def test_weights_without_room_are_read_ahead_and_dropped_in_every_run(environment, form, network, tmp_path):
    """The limit has room for half of the weights: the others go through a window."""
    weights = 4 * LAYERS * WIDTH * WIDTH
    folder, limit = tmp_path / "form", sum(process_lab.promise(form[0], "c")) - weights // 2
    line = [network, "-o", folder, "--process", "--dim", "b=1", "--memory", limit, "--program", "c", "--format", "json"]
    report = json.loads(environment.run("remat-opt", *line, *wheel.LIMITS))
    resident = report["form"]["resident_weights_bytes"]
    assert abs(resident - weights // 2) < weights // 8
    assert f"resident {resident}\n" in (folder / "process.remat").read_text()
    code = START + """
session = remat_opt.session(sys.argv[1], options)
is_same = all(numpy.array_equal(session.run(None, given)[0], stock[0]) for _ in range(4))
told = session.memory()
print(json.dumps([is_same, told.weights_asked_bytes, told.weights_dropped_bytes]))"""
    is_same, asked, dropped = environment.python(code, folder, network)
    assert is_same
    assert asked > dropped > 0
    program = process_lab.built(HERE / "process.c", tmp_path)
    if (why := cgroup.why_not()) is not None:
        pytest.skip(why)
    kept = [cgroup.run(1 << 30, [program, path, RUNS, "x", "y", WIDTH], 1 << 40) for path in (form[0], folder)]
    assert kept[0].out == kept[1].out
    held = cgroup.run(limit, [program, folder, RUNS, "x", "y", WIDTH], process_lab.most_read(folder, RUNS))
    assert (held.status, held.out) == (0, kept[0].out), held.err


def test_eight_sessions_share_the_mapped_weights(environment, form):
    """The kernel counts pages in shares of those that map them."""
    code = """
import pathlib
import numpy, onnxruntime
def options():
    chosen = onnxruntime.SessionOptions()
    chosen.intra_op_num_threads = 1
    return chosen
given = {"x": numpy.ones([1, 1024], numpy.float32)}
def taken():
    text = pathlib.Path("/proc/self/smaps_rollup").read_text()
    kilobytes = dict(line.split(":") for line in text.splitlines()[1:])
    return [int(kilobytes[key].split()[0]) << 10 for key in ("Pss", "Anonymous")]
found, sessions = [], []
for _ in range(8):
    sessions.append(remat_opt.session(sys.argv[1], options()))
    sessions[-1].run(None, given)
    found.append(taken())
print(json.dumps(found))"""
    folder, _ = form
    weights = 4 * LAYERS * WIDTH * WIDTH
    found = environment.python(code, folder)
    more = found[-1][0] - found[0][0]
    assert more < weights // 2, (found, weights)


@pytest.fixture(scope="session")
def planned(environment, tmp_path_factory):
    """A training step with a plan of memory, and its block."""
    path = tmp_path_factory.mktemp("shared") / "step.onnx"
    source = models.ROOT / "test" / "models" / "unet_tiny_train.onnx"
    report = json.loads(environment.run("remat-opt", source, "-o", path, "--format", "json", *wheel.LIMITS))
    return path, report["arena_plan"]["block_bytes"]


SHARED = """
import pathlib, subprocess, threading
import numpy, onnxruntime
random = numpy.random.default_rng(0)
def options():
    chosen = onnxruntime.SessionOptions()
    chosen.intra_op_num_threads = 1
    return chosen
def feed(session):
    kinds = {"tensor(float)": numpy.float32, "tensor(int64)": numpy.int64}
    return {
        one.name: random.integers(0, 2, one.shape).astype(kinds[one.type]) if "int" in one.type
        else random.random(one.shape, numpy.float32)
        for one in session.get_inputs()
    }
def bits(session, given):
    return hash(tuple(value.tobytes() for value in session.run(None, given)))
"""


def test_eight_sessions_have_one_block_in_turns(environment, planned):
    code = SHARED + """
sessions = [remat_opt.session(sys.argv[1], options(), share=True) for _ in range(8)]
given = feed(sessions[0])
expected = bits(remat_opt.session(sys.argv[1], options()), given)
same = []
def work(session):
    same.append(all(bits(session, given) == expected for _ in range(10)))
threads = [threading.Thread(target=work, args=[session]) for session in sessions]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
told = [session.memory() for session in sessions]
print(json.dumps([same, [[one.runs, one.placed, one.missed, one.refused, one.shared_bytes] for one in told]]))"""
    path, block = planned
    same, told = environment.python(code, path)
    assert same == [True] * 8
    for runs, placed, missed, refused, shared in told:
        assert (runs, missed, refused) == (10, 0, 0)
        assert placed > 0
        assert 0 < shared <= block + (1 << 16), "the block of all eight"


def test_eight_processes_have_one_block_in_turns_and_it_goes_with_the_last(environment, planned, tmp_path):
    child = SHARED + """
session = remat_opt.session(sys.argv[1], options(), share=sys.argv[2])
given = feed(session)
print(json.dumps([len({hash(bits(session, given)) for _ in range(10)}), session.memory().missed]), flush=True)
sys.stdin.read()"""
    parent = """
import pathlib, subprocess
children = [
    subprocess.Popen([sys.executable, "-c", sys.argv[3], *sys.argv[1:3]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    for _ in range(8)
]
said = [json.loads(child.stdout.readline()) for child in children]
def shared(child):
    lines = pathlib.Path(f"/proc/{child.pid}/smaps_rollup").read_text().splitlines()[1:]
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss_Shmem:"))
together = sum(map(shared, children))
listed = pathlib.Path(sys.argv[2]).read_text().splitlines()
for child in children:
    child.communicate()
print(json.dumps([said, together, len(listed), [pathlib.Path(line).exists() for line in listed]]))"""
    path, block = planned
    prelude = "import json, sys, remat_opt\n"
    said, together, listed, alive = environment.python(parent, path, tmp_path / "one.block", prelude + child)
    assert said == [[1, 0]] * 8
    assert block // 2 < together <= block + (1 << 16), "one block, in shares of those that map it"
    assert (listed, any(alive)) == (8, False)


def test_a_block_that_is_shared_has_no_limit_beside_it(environment, planned):
    code = """
found = []
for keywords in ({"share": True, "memory": 1 << 30}, {"share": "/no/such/folder/block"}):
    try:
        remat_opt.session(sys.argv[1], **keywords)
    except Exception as error:
        found.append([type(error).__name__, str(error)])
print(json.dumps(found))"""
    (kind, _), (_, why) = environment.python(code, planned[0])
    assert kind == "UsageError"
    assert "/no/such/folder/block" in why


def test_a_limit_that_is_too_small_names_the_ledger_and_the_smallest_that_works(environment, network, tmp_path):
    line = [network, "-o", tmp_path / "form", "--process", "--dim", "b=1", "--format", "json", *wheel.LIMITS]
    refused = json.loads(environment.run("remat-opt", *line, "--memory", "30MiB", status=1))["error"]
    assert refused["details"]["type"] == "process-too-large"
    assert refused["details"]["forbidden_by"] == "program"
    least = refused["details"]["least_bytes"]
    report = json.loads(environment.run("remat-opt", *line, "--memory", least + (1 << 20)))
    assert report["process"]["limit"]["holds"]
    plain = [network, "-o", tmp_path / "plain.onnx", "--dim", "b=1", "--format", "json", *wheel.LIMITS]
    refused = json.loads(environment.run("remat-opt", *plain, "--memory", "70MiB", status=1))["error"]
    assert refused["details"]["forbidden_by"] == "weights"


def test_inspect_predicts_and_measures_six_ledgers(environment, network):
    report = json.loads(environment.run("remat-opt", "inspect", network, "--dim", "b=1", "--format", "json"))
    predicted, measured = report["process"]["predicted"], report["process"]["measured"]
    assert predicted["heap_weights_bytes"] == measured["heap_weights_bytes"] == 4 * LAYERS * WIDTH * WIDTH
    assert predicted["outputs_bytes"] == measured["outputs_bytes"] == 4 * WIDTH
    must = {one["program"]: one["must_be_there_bytes"] for one in report["process"]["promises"]}
    assert must["python"] > must["c"] > 4 * LAYERS * WIDTH * WIDTH
