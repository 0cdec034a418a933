"""The class `close`: queries that read many rows in tiles of these rows, in ONNX Runtime beside its own kernels and double precision."""

import json

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from models import FLOAT, Builder
from test_streamed import FAST, KINDS

ROWS, QUERIES, HEADS, WIDTH = 8192, 32, 2, 32
EACH = WIDTH // HEADS


def network(path, element=FLOAT, dtype=np.float32):
    """Cross attention as exporters write it: queries are constant, keys and values made of `x`, and `mask` is added to scores."""
    b = Builder([("x", element, [1, ROWS, WIDTH]), ("mask", element, [1, 1, 1, ROWS])], [("y", element, [1, HEADS, QUERIES, EACH])])
    queries = np.random.default_rng(2).standard_normal((1, HEADS, QUERIES, EACH)).astype(dtype)
    weights = {}

    def projected(name, perm):
        weights[name] = (np.random.default_rng(len(name)).standard_normal((WIDTH, WIDTH)) / WIDTH**0.5).astype(dtype)
        flat = b.op("MatMul", ["x", b.constant(f"{name}.weights", weights[name])], f"{name}.flat")
        apart = b.op("Reshape", [flat, b.constant(f"{name}.to", np.array([1, ROWS, HEADS, EACH]))], f"{name}.apart")
        return b.op("Transpose", [apart], name, perm=perm)

    keys = projected("keys", [0, 2, 3, 1])
    scores = b.op("MatMul", [b.constant("queries", queries), keys], "scores")
    scores = b.op("Mul", [scores, b.constant("scale", np.array(EACH**-0.5, dtype))], "scaled")
    shares = b.op("Softmax", [b.op("Add", [scores, "mask"], "masked")], "shares", axis=-1)
    b.op("MatMul", [shares, projected("values", [0, 2, 1, 3])], "y")

    def computed(x, mask):
        keys, values = ((x.astype(np.float64) @ weights[name].astype(np.float64)).reshape(ROWS, HEADS, EACH) for name in ("keys", "values"))
        scores = np.einsum("hqd,khd->hqk", queries[0].astype(np.float64), keys) * EACH**-0.5 + mask[0]
        powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return np.einsum("hqk,khd->hqd", powers / powers.sum(axis=-1, keepdims=True), values)[None]

    return b.save(path), computed


def run(path, x, mask):
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"]).run(None, {"x": x, "mask": mask})[0]


@pytest.fixture(scope="module")
def written(remat_opt, tmp_path_factory):
    folder = tmp_path_factory.mktemp("softmax")
    model, computed = network(folder / "model.onnx")
    out = folder / "out.onnx"
    said = remat_opt(model, "-o", out, "--fission", "close", "-b", "min", *FAST)
    assert out.exists(), said.stderr
    return model, out, computed, json.loads(said.stdout)


def test_scores_keys_and_values_are_never_whole(written):
    _, out, _, report = written
    assert report["tiling"]["streamed"] and report["outputs"] == "close"
    before, after = (report["measured"][when]["arena_off"] for when in ("before", "after"))
    assert after <= 0.4 * before
    graph = onnx.shape_inference.infer_shapes(onnx.load(out)).graph
    assert not any(node.op_type == "Softmax" for node in graph.node)
    sizes = [np.prod([dim.dim_value for dim in value.type.tensor_type.shape.dim]) for value in graph.value_info]
    assert max(sizes) < ROWS * WIDTH


@pytest.mark.parametrize("kind", KINDS)
def test_what_tiles_weigh_is_as_near_to_double_precision_as_the_original(kind, written):
    model, out, computed, _ = written
    x = KINDS[kind](np.random.default_rng(5), (1, ROWS, WIDTH)).astype(np.float32)
    mask = np.zeros((1, 1, 1, ROWS), np.float32)
    before, after, exact = run(model, x, mask), run(out, x, mask), computed(x, mask)
    off = [np.abs(found - exact).max() / np.abs(exact).max() for found in (before, after)]
    assert off[1] <= 2 * off[0] + 4e-7, off


def test_rows_behind_a_mask_do_not_count(written):
    """Of whole tiles of them, too, in which the largest score is minus infinity."""
    model, out, computed, _ = written
    x = np.random.default_rng(5).standard_normal((1, ROWS, WIDTH)).astype(np.float32)
    mask = np.zeros((1, 1, 1, ROWS), np.float32)
    mask[..., : ROWS * 5 // 8] = -np.inf
    mask[..., -3:] = np.finfo(np.float32).min
    before, after, exact = run(model, x, mask), run(out, x, mask), computed(x, mask)
    off = [np.abs(found - exact).max() / np.abs(exact).max() for found in (before, after)]
    assert off[1] <= 2 * off[0] + 4e-7, off
    mask[:] = -np.inf
    assert np.isnan(run(model, x, mask)).all() and np.isnan(run(out, x, mask)).all()


def test_scores_in_half_precision_are_never_whole(remat_opt, tmp_path):
    """ONNX Runtime would take their softmax apart."""
    model, computed = network(tmp_path / "model.onnx", onnx.TensorProto.FLOAT16, np.float16)
    out = tmp_path / "out.onnx"
    said = remat_opt(model, "-o", out, "--fission", "close", "-b", "min", *FAST)
    assert out.exists(), said.stderr
    report = json.loads(said.stdout)
    assert report["tiling"]["streamed"]
    before, after = (report["measured"][when]["arena_off"] for when in ("before", "after"))
    assert after <= 0.4 * before
    x = np.random.default_rng(5).standard_normal((1, ROWS, WIDTH)).astype(np.float16)
    mask = np.zeros((1, 1, 1, ROWS), np.float16)
    before, after, exact = run(model, x, mask), run(out, x, mask), computed(x, mask)
    off = [np.abs(found.astype(np.float64) - exact).max() / np.abs(exact).max() for found in (before, after)]
    assert off[1] <= 2 * off[0] + 1e-3, off


@pytest.mark.parametrize("level", ["all", "extended"])
def test_attention_in_half_precision_keeps_its_bits(level, remat_opt, tmp_path):
    """Factors and transpositions of its products, which the runtime converts to single precision, do not become part of them; an addition becomes part of
    the normalization behind it, which is converted as well, only where everything is optimized."""
    half, rows = onnx.TensorProto.FLOAT16, 256
    b = Builder([("x", half, [1, rows, WIDTH])], [("y", half, [1, rows, WIDTH])])
    state = "x"
    for layer in range(3):

        def projected(name, of, perm, layer=layer):
            weights = np.random.default_rng(layer).standard_normal((WIDTH, WIDTH)) / WIDTH**0.5
            flat = b.op("MatMul", [of, b.constant(f"{name}.{layer}.weights", weights.astype(np.float16))], f"{name}.{layer}.flat")
            apart = b.op("Reshape", [flat, b.constant(f"{name}.{layer}.to", np.array([1, rows, HEADS, EACH]))], f"{name}.{layer}.apart")
            return b.op("Transpose", [apart], f"{name}.{layer}", perm=perm)

        scale = b.constant(f"scale.{layer}", np.array(0.37, np.float16))
        queries = b.op("Mul", [projected("queries", state, [0, 2, 1, 3]), scale], f"queries.{layer}.scaled")
        keys = b.op("Mul", [projected("keys", state, [0, 2, 3, 1]), scale], f"keys.{layer}.scaled")
        shares = b.op("Softmax", [b.op("MatMul", [queries, keys], f"scores.{layer}")], f"shares.{layer}", axis=-1)
        mixed = b.op("MatMul", [shares, projected("values", state, [0, 2, 1, 3])], f"mixed.{layer}")
        back = b.op("Transpose", [mixed], f"back.{layer}", perm=[0, 2, 1, 3])
        flat = b.op("Reshape", [back, b.constant(f"flat.{layer}", np.array([1, rows, WIDTH]))], f"flat.{layer}.of")
        state = b.op("Add", [state, flat], f"state.{layer}")
    b.opsets[""] = 17
    numbers = np.random.default_rng(7).standard_normal((2 + WIDTH, WIDTH)).astype(np.float16)
    scale, bias = (b.constant(f"norm.{at}", numbers[at]) for at in (0, 1))
    b.op("MatMul", [b.op("LayerNormalization", [state, scale, bias], "normed"), b.constant("head", numbers[2:])], "y")
    model, out = b.save(tmp_path / "model.onnx"), tmp_path / "out.onnx"
    said = remat_opt(model, "-o", out, "--level", level, "--emit-plan", tmp_path / "plan.json", *FAST)
    assert out.exists(), said.stderr
    report = json.loads(said.stdout)
    before, after = (report["measured"][when]["arena_off"] for when in ("before", "after"))
    assert not report["rejected"] and after <= 0.8 * before
    again = tmp_path / "again.onnx"
    said = remat_opt(model, "-o", again, "--level", level, "--plan", tmp_path / "plan.json", "--threads", "1", "--no-arena-plan")
    assert again.exists(), said.stderr
    assert again.read_bytes() == out.read_bytes()
    x = np.random.default_rng(3).standard_normal((1, rows, WIDTH)).astype(np.float16)
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, f"ORT_ENABLE_{level.upper()}")
    first, second = (ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0] for path in (model, out))
    assert first.tobytes() == second.tobytes()
