"""Sessions that follow a plan, as users have them: what they tell of their memory, the limit that they keep, and requests in parts
of their batch."""

import shutil

import models
import onnx
import pytest
import wheel
from onnx import TensorProto, helper, numpy_helper

pytestmark = wheel.is_there

SMALL = models.ROOT / "test" / "models" / "mlp_tiny_train.onnx"
MIXING = models.ROOT / "test" / "models" / "features" / "dynamic_batch.onnx"

# What every program begins with: a model with its plan, planned once for all of them.
START = """
import pathlib, threading, warnings
import numpy, onnxruntime
path = pathlib.Path(sys.argv[1])
plans = remat_opt._native.ArenaPlans(str(path) + ".arena")
def feed(batch, seq, seed=0):
    return {"x": numpy.random.default_rng(seed).random([batch, seq, 8], numpy.float32)}
def need(batch, seq):
    return plans.run_bytes({"batch": batch, "seq": seq, "intra_op_num_threads": 1})
def options(threads=1):
    chosen = onnxruntime.SessionOptions()
    chosen.intra_op_num_threads = threads
    return chosen
stock = onnxruntime.InferenceSession(path, options(), providers=["CPUExecutionProvider"])
def same(found, given):
    return all(numpy.array_equal(one, other) for one, other in zip(found, stock.run(None, given), strict=True))
"""


def attention():
    """An attention over `[batch, seq, 8]` with two heads, whose shapes are computed from that of the input."""
    node = helper.make_node
    nodes = [
        node("Shape", ["x"], ["b"], start=0, end=1),
        node("Shape", ["x"], ["s"], start=1, end=2),
        node("Concat", ["b", "s", "heads", "left"], ["apart"], axis=0),
        node("Concat", ["b", "s", "eight"], ["joined"], axis=0),
    ]
    for name, order in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])):
        nodes += [
            node("MatMul", ["x", f"w_{name}"], [f"{name}_p"]),
            node("Reshape", [f"{name}_p", "apart"], [f"{name}_r"]),
            node("Transpose", [f"{name}_r"], [name], perm=order),
        ]
    nodes += [
        node("MatMul", ["q", "k"], ["scores"]),
        node("Softmax", ["scores"], ["shares"], axis=-1),
        node("MatMul", ["shares", "v"], ["mixed"]),
        node("Transpose", ["mixed"], ["back"], perm=[0, 2, 1, 3]),
        node("Reshape", ["back", "joined"], ["flat"]),
        node("Add", ["flat", "x"], ["y"]),
    ]
    held = [helper.make_tensor(name, TensorProto.INT64, [1], [value]) for name, value in (("heads", 2), ("left", -1), ("eight", 8))]
    import numpy

    random = numpy.random.default_rng(0)
    held += [numpy_helper.from_array(random.random([8, 8], numpy.float32) - 0.5, f"w_{name}") for name in "qkv"]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", "seq", 8]) for name in "xy"]
    graph = helper.make_graph(nodes, "attention", values[:1], values[1:], held)
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


@pytest.fixture(scope="module")
def planned(environment, tmp_path_factory):
    """The attention with its plan, and a model that mixes its batch with one."""
    folder = tmp_path_factory.mktemp("planned")
    onnx.save(attention(), folder / "model.onnx")
    environment.python(
        """
for source, written, shapes in ((sys.argv[1], sys.argv[2], "batch=1..16,seq=1..64"), (sys.argv[3], sys.argv[4], "batch=1..16")):
    remat_opt.optimize(source, "none", output=written, shapes=shapes, **SEARCH)
print("null")""",
        folder / "model.onnx",
        folder / "attention.onnx",
        MIXING,
        folder / "mixing.onnx",
    )
    return folder


def test_a_session_is_one_of_the_runtime_and_each_counts_for_itself(environment, planned):
    found = environment.python(
        START
        + """
sessions = [remat_opt.session(path) for _ in range(3)]
for at, session in enumerate(sessions):
    for run in range(at):
        assert same(session.run(None, feed(2 + run, 20)), feed(2 + run, 20))
with_threads = []
for threads in (1, 2, 4):
    session = remat_opt.session(path, options(threads))
    session.run(["y"], feed(16, 64))
    with_threads.append([session.memory().runs, session.memory().missed + session.memory().refused])
chosen = onnxruntime.SessionOptions()
again = [remat_opt.session(path, chosen) for _ in range(2)]
again[1].run(None, feed(1, 1))
counted = sessions[2].memory()
print(json.dumps([
    [isinstance(session, onnxruntime.InferenceSession) for session in sessions],
    [[session.memory().runs, session.memory().missed] for session in sessions], with_threads,
    [session.memory().runs for session in again], chosen.intra_op_num_threads, counted.block_bytes == plans.block_bytes,
    counted.shapes, counted.used_bytes <= counted.most_used_bytes <= counted.block_bytes,
    remat_opt.session(path.with_name("model.onnx")).memory()]))""",
        planned / "attention.onnx",
    )
    kinds, counts, threads, again, nothing_set, is_bound, shapes, is_within, without = found
    assert all(kinds)
    assert counts == [[0, 0], [1, 0], [2, 0]]
    assert threads == [[1, 0]] * 3
    assert again == [0, 1]
    assert nothing_set == 0
    assert is_bound
    assert is_within
    assert shapes == 2
    assert without is None


def test_requests_above_the_limit_run_in_parts_with_the_same_bits(environment, planned):
    found = environment.python(
        START
        + """
limit = need(5, 64)
session = remat_opt.session(path, options(), memory=limit)
before, told = 0, []
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    for batch, seq in ((5, 64), (6, 64), (16, 64), (16, 50), (1, 64), (16, 1), (40, 20)):
        given = feed(batch, seq)
        assert same(session.run(None, given), given), (batch, seq)
        told.append(session.memory().runs - before)
        before = session.memory().runs
given = feed(16, 64)
value = onnxruntime.OrtValue.ortvalue_from_numpy(given["x"])
assert same([one.numpy() for one in session.run_with_ort_values(None, {"x": value})], given)
binding = session.io_binding()
given = feed(2, 8)
binding.bind_cpu_input("x", given["x"])
binding.bind_output("y")
session.run_with_iobinding(binding)
assert same(binding.copy_outputs_to_cpu(), given)
counted = session.memory()
print(json.dumps([told, [str(one.message) for one in said], counted.most_used_bytes <= limit + 4096, counted.missed]))""",
        planned / "attention.onnx",
    )
    runs, said, is_kept, missed = found
    assert runs[:3] == [1, 2, 4]
    assert runs[4:6] == [1, 1]
    # It fits, and the plan is for no more than 16.
    assert runs[6] == 3
    assert runs[3] == 2
    assert said == []
    assert is_kept
    assert missed == 0


def test_what_may_round_otherwise_is_told_once(environment, planned):
    found = environment.python(
        START
        + """
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    # Parts of lone rows: a product of one row has a kernel of its own.
    small = remat_opt.session(path, options(), memory=need(1, 1))
    for batch in (5, 6, 7):
        numpy.testing.assert_allclose(small.run(None, feed(batch, 1))[0], stock.run(None, feed(batch, 1))[0], rtol=1e-5)
print(json.dumps([[str(one.message), one.filename] for one in said]))""",
        planned / "attention.onnx",
    )
    [[message, file]] = found
    assert "(MatMul) may round otherwise for 1 of 5 members of the batch than for all" in message
    assert file == "<string>"


def test_a_request_that_cannot_be_divided_names_the_op_and_what_works(environment, planned):
    found = environment.python(
        """
import numpy
def refused(path, memory, given, **keywords):
    try:
        remat_opt.session(path, memory=memory, **keywords).run(None, given)
    except remat_opt.ModelError as error:
        return [str(error), error.op, error.details.get("need_bytes")]
whole = {"x": numpy.zeros([16, 256], numpy.float32)}
mixing = refused(sys.argv[1], 2048, whole)
remat_opt.session(sys.argv[1], memory=mixing[2]).run(None, whole)
given = {"x": numpy.zeros([16, 64, 8], numpy.float32)}
lone = refused(sys.argv[2], "3KB", given)
remat_opt.session(sys.argv[2], memory=lone[2]).run(None, given)
print(json.dumps([mixing, lone, refused(sys.argv[2], "64KiB", given, batch="seq"), refused(sys.argv[2], "64KiB", given, batch="n")]))""",
        planned / "mixing.onnx",
        planned / "attention.onnx",
    )
    mixing, lone, along, unknown = found
    assert mixing[1] == "pressure.wide"
    assert "`pressure.wide` (Concat)" in mixing[0]
    assert f"The smallest limit that works for it is {mixing[2]} bytes" in mixing[0]
    assert "one member of the batch takes more" in lone[0]
    assert lone[1] is None
    assert "cannot be divided along `seq`" in along[0]
    assert along[1] is not None
    assert "there are `batch`, `seq`" in unknown[0]


def test_requests_at_one_time_share_the_limit(environment, planned):
    found = environment.python(
        START
        + """
limit = need(6, 64)
session = remat_opt.session(path, options(), memory=limit)
wrong, sizes = [], [1, 3, 5, 6, 9, 16]
start = threading.Barrier(4)
def work(seed):
    start.wait()
    at = 0
    # However the machine shares its time out: until one had to wait.
    while at < 12 or not session.memory().waits:
        given = feed(sizes[(seed + at) % 6], 64, seed)
        if not same(session.run(None, given), given):
            wrong.append(seed)
        at += 1
workers = [threading.Thread(target=work, args=[seed]) for seed in range(4)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
counted = session.memory()
print(json.dumps([wrong, counted.runs >= 48, counted.waits > 0, counted.missed]))""",
        planned / "attention.onnx",
    )
    assert found == [[], True, True, 0]


@pytest.mark.parametrize("text", ["remat-arena 1\nmodel blake3:0\n", "", "\0\xff", "remat-arena 2\n"])
def test_what_is_no_plan_is_to_be_planned_again(environment, planned, tmp_path, text):
    (tmp_path / "model.onnx").write_bytes((planned / "model.onnx").read_bytes())
    (tmp_path / "model.onnx.arena").write_bytes(text.encode("latin-1"))
    found = environment.python(
        """
try:
    remat_opt.session(sys.argv[1])
except remat_opt.ModelError as error:
    print(json.dumps(str(error)))""",
        tmp_path / "model.onnx",
    )
    assert "is no plan of memory of this version" in found
    assert "plan it again (`remat-opt`)" in found


def test_a_limit_needs_a_plan_and_a_size(environment, planned):
    found = environment.python(
        """
said = []
for path, memory in ((sys.argv[1], "1MiB"), (sys.argv[2], "many"), (sys.argv[2], 0), (sys.argv[2], "-1")):
    try:
        remat_opt.session(path, memory=memory)
    except remat_opt.RematError as error:
        said.append([type(error).__name__, str(error)])
print(json.dumps(said))""",
        planned / "model.onnx",
        planned / "attention.onnx",
    )
    assert [kind for kind, _ in found] == ["ModelError", "UsageError", "UsageError", "UsageError"]
    assert "plan it (`remat-opt`)" in found[0][1]


def test_a_plan_for_the_cuda_provider_is_for_sessions_that_name_it(environment, tmp_path):
    path = tmp_path / "model.onnx"
    shutil.copy(SMALL, path)
    environment.run("remat-opt", path, "-o", f"{path}.arena", "--device", "cuda", "--quiet")
    found = environment.python(
        """
import pathlib, warnings
import numpy, onnxruntime
path = pathlib.Path(sys.argv[1])
providers = [("CUDAExecutionProvider", {"device_id": 0}), "CPUExecutionProvider"]
plain = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
feed = {one.name: numpy.ones([dim if isinstance(dim, int) else 1 for dim in one.shape], numpy.float32) for one in plain.get_inputs()}
expected = plain.run(None, feed)
def same(session):
    return all(numpy.array_equal(one, other) for one, other in zip(session.run(None, feed), expected, strict=True))
with warnings.catch_warnings():
    # This ONNX Runtime has no such provider, so the processor runs all nodes, and nothing is requested of a device.
    warnings.simplefilter("ignore")
    sessions = [remat_opt.session(path, providers=providers) for _ in range(3)]
counted = [session.memory() for session in sessions]
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    other = remat_opt.session(path)
def refused(call, *arguments, **keywords):
    try:
        call(*arguments, **keywords)
    except remat_opt.UsageError as error:
        return str(error)
print(json.dumps([
    [same(session) for session in [*sessions, other]],
    [[one.placed, one.missed, one.at_load, one.used_bytes, one.block_bytes > 0] for one in counted],
    [str(one.message) for one in said], other.memory(),
    refused(remat_opt.session, path, providers=providers, memory="1MiB"),
    refused(remat_opt.session, path, providers=[("CUDAExecutionProvider", {"user_compute_stream": "1"})]),
    refused(remat_opt.record_requests, path, [feed], path.with_name("requests.json"))]))""",
        path,
    )
    bits, counted, said, without, limited, streamed, recorded = found
    assert all(bits)
    assert counted == [[0, 0, 0, 0, True]] * 3
    assert len(said) == 1
    assert "which `providers` do not name" in said[0]
    assert without is None
    assert "`memory` is for the memory of the processor" in limited
    assert "takes no `user_compute_stream`" in streamed
    assert "no CUDA provider" in recorded
