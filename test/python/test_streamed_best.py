"""Searches for the largest or smallest elements in tiles of the axis that they search, bit by bit beside ONNX Runtime's own kernels."""

import json

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from models import FLOAT, INT64, Builder
from test_streamed import FAST

ROWS = 60_000
TYPES = {"float": FLOAT, "double": onnx.TensorProto.DOUBLE, "int32": onnx.TensorProto.INT32, "int64": INT64, "uint8": onnx.TensorProto.UINT8}

CASES = {
    "ArgMax of the last axis": ("ArgMax", "float", 1, {}),
    "ArgMax of the first axis": ("ArgMax", "float", 0, {"keepdims": 0}),
    "ArgMax, the last of equals": ("ArgMax", "float", -1, {"select_last_index": 1, "keepdims": 0}),
    "ArgMin of bytes": ("ArgMin", "uint8", 0, {"select_last_index": 1}),
    "ArgMin of integers": ("ArgMin", "int32", -1, {}),
    "TopK": ("TopK", "float", -1, {}),
    "TopK, the smallest": ("TopK", "float", 0, {"largest": 0}),
    "TopK of doubles": ("TopK", "double", -1, {"sorted": 1}),
    "TopK of integers": ("TopK", "int64", 1, {"largest": 0}),
}


def run(path, x):
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"]).run(None, {"x": x})


def same(path, out, x):
    before, after = run(path, x), run(out, x)
    return [found.tobytes() for found in before] == [found.tobytes() for found in after]


def network(path, op, kind, axis, attributes, count):
    """Elements of `x`, rounded so that many are equal, and the best of them."""
    dims = [3, ROWS] if axis in (1, -1) else [ROWS, 3]
    found = [count if at == axis % 2 else dim for at, dim in enumerate(dims)]
    places = [dim for at, dim in enumerate(found) if at != axis % 2 or attributes.get("keepdims", 1)]
    outputs = [("values", TYPES[kind], found)] if op == "TopK" else []
    b = Builder([("x", FLOAT, dims)], [*outputs, ("places", INT64, places)])
    scaled = b.op("Mul", ["x", b.constant("scale", np.array(20, np.float32))], "scaled")
    shifted = b.op("Add", [scaled, b.constant("shift", np.array(100, np.float32))], "shifted")
    rounded = b.op("Floor", [shifted], "rounded")
    scores = rounded if kind == "float" else b.op("Cast", [rounded], "scores", to=TYPES[kind])
    if op == "TopK":
        b.several("TopK", [scores, b.constant("count", np.array([count]))], ["values", "places"], "best", axis=axis, **attributes)
    else:
        b.several(op, [scores], ["places"], "best", axis=axis, **attributes)
    return b.save(path), dims


@pytest.mark.parametrize("what", CASES)
def test_the_best_of_tiles_are_those_of_the_whole(what, remat_opt, tmp_path):
    op, kind, axis, attributes = CASES[what]
    model, dims = network(tmp_path / "model.onnx", op, kind, axis, attributes, 7 if op == "TopK" else 1)
    out = tmp_path / "out.onnx"
    said = remat_opt(model, "-o", out, "-b", "min", "--max-overhead", "1000%", *FAST)
    assert out.exists(), said.stderr
    report = json.loads(said.stdout)
    assert report["tiling"]["streamed"] and report["outputs"] == "bit-identical"
    graph = onnx.shape_inference.infer_shapes(onnx.load(out)).graph
    parts = [node for node in graph.node if node.op_type == op]
    assert len(parts) > 2
    for seed in range(3):
        random = np.random.default_rng(seed)
        assert same(model, out, random.standard_normal(dims).astype(np.float32))
        assert same(model, out, random.integers(-1, 2, dims).astype(np.float32) / 20)
    assert same(model, out, np.zeros(dims, np.float32))


def test_the_scores_of_queries_against_constant_rows_are_never_whole(remat_opt, tmp_path):
    queries, width, rows, count = 16, 16, 100_000, 10
    b = Builder([("x", FLOAT, [queries, width])], [("values", FLOAT, [queries, count]), ("places", INT64, [queries, count])])
    known = np.random.default_rng(1).standard_normal((width, rows)).astype(np.float32)
    # Some stand twice.
    known[:, rows // 2 : rows // 2 + 5000] = known[:, :5000]
    scores = b.op("MatMul", ["x", b.constant("known", known)], "scores")
    b.several("TopK", [scores, b.constant("count", np.array([count]))], ["values", "places"], "best", axis=-1)
    model, out = b.save(tmp_path / "model.onnx"), tmp_path / "out.onnx"
    said = remat_opt(model, "-o", out, *FAST)
    assert out.exists(), said.stderr
    report = json.loads(said.stdout)
    assert report["tiling"]["streamed"] and report["outputs"] == "bit-identical"
    before, after = (report["measured"][when]["arena_off"] for when in ("before", "after"))
    assert after <= 0.6 * before
    for seed in range(3):
        x = np.random.default_rng(seed).standard_normal((queries, width)).astype(np.float32)
        assert same(model, out, x) and same(model, out, np.round(x))
