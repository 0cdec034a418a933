"""What the program writes is a valid ONNX model that computes the same bits."""

import json

import onnx
import pytest
from models import Facts
from runtime import ORDERS, bits

EFFORT = ["--step-limit", "500", "--threads", "1", "--time-limit", "10m"]
"""The same work on every machine, whatever else runs there."""


def origin(node):
    """The node that a copy repeats; `None` where the node is no copy."""
    return next((p.value for p in node.metadata_props if p.key == "remat.recompute_of"), None)


def origins(model):
    """The nodes that are recomputed, as the copies name them."""
    return [origin(n) for n in model.graph.node if origin(n) is not None]


def read_names(nodes):
    """What nodes and their subgraphs read, but for those that only release memory."""
    names = set()
    for node in nodes:
        if not node.name.endswith("__sink"):
            names.update(node.input)
        for graph in (a.g for a in node.attribute if a.type == onnx.AttributeProto.GRAPH):
            names |= read_names(graph.node)
    return names


def load(path):
    """The model without what may be written as empty or left out."""
    model = onnx.load(str(path))
    for message, field in [(i, "domain") for i in model.opset_import] + [
        (t, "raw_data") for t in model.graph.initializer
    ]:
        if not getattr(message, field):
            message.ClearField(field)
    return model


@pytest.fixture(scope="module")
def rewritten(model_path, remat_opt, tmp_path_factory):
    """The model at the lowest peak that is found, with the report of the run."""
    out = tmp_path_factory.mktemp("model") / "out.onnx"
    # Any runtime: the peak is counted, and compared, in the order of the file.
    search = ["--baseline", "file", "--budget", "min", *EFFORT]
    run = remat_opt(model_path, "-o", out, "--target", "onnx", *search, "--format", "json")
    assert run.returncode == 0, run.stderr
    return model_path, out, json.loads(run.stdout)


def test_the_rewritten_model_is_valid_and_computes_the_same_bits(rewritten):
    base, out, report = rewritten
    onnx.checker.check_model(str(out), full_check=True)
    assert report["peak_bytes"] <= report["baseline_peak_bytes"]
    assert bits(out, "off", "priority") == bits(base, "off", "priority")
    assert bits(out, "all") == bits(base, "all")


def test_clones_name_their_origin(rewritten):
    base, out, report = rewritten
    names = {n.name for n in onnx.load(str(base), load_external_data=False).graph.node}
    recomputed = origins(onnx.load(str(out), load_external_data=False))
    assert len(recomputed) == report["recomputes"]
    if all(names):
        assert set(recomputed) <= names


def test_nothing_of_the_signature_or_the_weights_is_lost(rewritten):
    base, out, _ = rewritten
    before, after = load(base), load(out)
    for field in ("input", "output", "initializer", "doc_string"):
        assert getattr(before.graph, field) == getattr(after.graph, field), field
    assert before.opset_import == after.opset_import
    ours = ("remat.clones", "remat.anchors")
    assert list(before.metadata_props) == [entry for entry in after.metadata_props if entry.key not in ours]


def test_each_feature_is_valid_after_the_recompute_of_what_it_touches(feature, remat_opt, tmp_path):
    """`passes/onnxruntime/run/tests` compare the bits, in the order of the model and in others."""
    before = onnx.load(str(feature), load_external_data=False)
    facts = Facts(feature)
    out = tmp_path / "out.onnx"
    arguments = ["--target", "onnx", "--order", "fixed", *EFFORT, *facts.arguments]
    for budget in ("60%", "70%", "80%", "90%"):
        run = remat_opt(feature, "-o", out, "--budget", budget, *arguments)
        if run.returncode == 0:
            break
        assert run.returncode in (1, 4), run.stderr
    assert run.returncode == 0, run.stderr

    after = onnx.load(str(out), load_external_data=False)
    assert facts.recomputed <= set(origins(after))
    assert not facts.never & set(origins(after))
    read = read_names(after.graph.node)
    assert all(read & set(n.output) for n in after.graph.node if origin(n) in facts.recomputed)
    # Shape inference of `onnx` knows sparse initializers in `Constant` only.
    onnx.checker.check_model(str(out), full_check=not before.graph.sparse_initializer)


def test_each_feature_keeps_its_bits_where_it_is_made_for_the_runtime(feature, remat_opt, tmp_path):
    facts = Facts(feature)
    out = tmp_path / "out.onnx"
    # A file that takes more is written, too: its bits are those of the model all the same.
    arguments = ["--target", "ort", "--budget", "min", *EFFORT, "--force"]
    run = remat_opt(feature, "-o", out, *arguments, *facts.arguments)
    assert run.returncode == 0, run.stderr
    for level in ("extended", "all"):
        for order in ORDERS:
            assert bits(out, level, order, facts.dims) == bits(feature, level, dims=facts.dims), (level, order)
