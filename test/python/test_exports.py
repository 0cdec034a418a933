"""What the program writes is a valid ONNX model that computes the same bits."""

import json

import onnx
import onnxruntime as ort
import pytest
from runtime import bits

OFF = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
ALL = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
PRIORITY = ort.ExecutionOrder.PRIORITY_BASED


@pytest.fixture
def rewritten(model_path, remat_opt, tmp_path):
    """The model at the lowest peak that is found, with the report of the run."""
    out = tmp_path / "out.onnx"
    run = remat_opt(model_path, "-o", out, "--budget", "min", "--time-limit", "3s", "--format", "json")
    assert run.returncode == 0, run.stderr
    return model_path, out, json.loads(run.stdout)


def test_the_rewritten_model_is_valid_and_computes_the_same_bits(rewritten):
    base, out, report = rewritten
    onnx.checker.check_model(str(out), full_check=True)
    assert report["peak_bytes"] <= report["baseline_peak_bytes"]
    assert bits(out, OFF, PRIORITY) == bits(base, OFF, PRIORITY)
    assert bits(out, ALL) == bits(base, ALL)


def test_clones_name_their_origin(rewritten):
    base, out, report = rewritten
    names = {n.name for n in onnx.load(str(base), load_external_data=False).graph.node}
    rewritten_nodes = onnx.load(str(out), load_external_data=False).graph.node
    origins = [p.value for n in rewritten_nodes for p in n.metadata_props if p.key == "remat.recompute_of"]
    assert len(origins) == report["recomputes"]
    if all(names):
        assert set(origins) <= names


def test_nothing_of_the_signature_or_the_weights_is_lost(rewritten):
    base, out, _ = rewritten
    before, after = onnx.load(str(base)), onnx.load(str(out))
    for field in ("input", "output", "initializer", "doc_string"):
        assert getattr(before.graph, field) == getattr(after.graph, field), field
    assert before.opset_import == after.opset_import
    assert before.metadata_props == after.metadata_props
