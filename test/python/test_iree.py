"""IREE compiles what the program writes, computes what ONNX Runtime computes, and takes less memory where the plan says so."""

import json

import iree_lab
import models
import pytest

pytestmark = pytest.mark.skipif(bool(iree_lab.why_not()), reason=str(iree_lab.why_not()))

DETERMINISTIC = ["--threads", "1", "--step-limit", "20000", "--time-limit", "120s"]
# Two steps of the scale: rounding may go the other way before and after an op.
TOLERANCE = {"quantize_dequantize": 0.2, "quantized": 0.2, "half_precision": 1e-3}
"""Shares of the largest number of an output. Where numbers are rounded to eight bits, IREE may round the other way."""
NOT_IN_IREE = {
    "absent_names",
    "contrib_operators",
    "dropout_training",
    "function_random",
    "layer_norm",
    "loop_captures",
    "loop_shadows",
    "max_pool_indices",
    "newer_operators",
    "optionals",
    "random_operators",
    "sequence_output",
    "sequences",
}
"""Models with operators that IREE 3.13 cannot lower; it says so of its own importer's text as well."""
NOT_IN_THE_FORM = {"sequence_map_captures", "sparse_initializer", "strings"}


@pytest.fixture
def exported(remat_opt, tmp_path):
    """Writes a model as MLIR under a budget; returns the text's path and the report."""

    def export(model, budget, *arguments):
        out = tmp_path / f"{model.stem}.{budget.rstrip('%')}.mlir"
        search = [] if budget == "none" else DETERMINISTIC
        # A compiler keeps the order of the file.
        counted = ["--baseline", "file", "--budget", budget]
        done = remat_opt(model, "-o", out, *counted, "--format", "json", *search, *arguments)
        assert done.returncode == 0, done.stderr
        return out, json.loads(done.stdout)

    return export


@pytest.mark.parametrize("name", [m.stem for m in models.FEATURES])
def test_iree_computes_what_onnx_runtime_computes(name, exported):
    if name in NOT_IN_IREE | NOT_IN_THE_FORM:
        pytest.skip("IREE cannot lower its operators, or the form cannot say them")
    path = next(m for m in models.FEATURES if m.stem == name)
    facts = models.Facts(path)
    feed = iree_lab.inputs(path, facts.dims)
    expected = iree_lab.reference(path, feed)
    text, _ = exported(path, "none", *facts.arguments)
    run = iree_lab.run(text, feed, len(expected))
    assert iree_lab.distance(run.outputs, expected) <= TOLERANCE.get(name, 1e-4)


@pytest.mark.parametrize(
    ("name", "budget", "share"),
    # IREE keeps one or two layers more than a plan does. The U-Net pads what it convolves in copies of its own, which no plan knows.
    [("mlp_tiny_train", "50%", 0.70), ("unet_tiny_train", "60%", 0.85)],
)
def test_the_peak_in_iree_falls(name, budget, share, exported):
    path = next(m for m in models.OWN if m.stem == name)
    feed = iree_lab.inputs(path)
    expected = iree_lab.reference(path, feed)
    given = sum(array.nbytes for array in feed.values())

    def peak(budget, *arguments):
        text, report = exported(path, budget, *arguments)
        run = iree_lab.run(text, feed, len(expected))
        assert iree_lab.distance(run.outputs, expected) <= 1e-4
        assert (report["recomputes"] > 0) == (budget != "none")
        return run.peak - given

    before, after = peak("none"), peak(budget)
    assert after <= share * before
    if name == "mlp_tiny_train":
        assert peak(budget, "--mlir-barriers", "none") > after, "without barriers, IREE undoes the plan"


def test_weights_in_a_file_are_found(exported):
    path = next(m for m in models.OWN if m.stem == "mlp_tiny_train")
    feed = iree_lab.inputs(path)
    expected = iree_lab.reference(path, feed)
    text, _ = exported(path, "none", "--mlir-weights", "file")
    assert "dense_resource" not in text.read_text()
    run = iree_lab.run(text, feed, len(expected), parameters=text.with_suffix(".safetensors"))
    assert iree_lab.distance(run.outputs, expected) <= 1e-4
