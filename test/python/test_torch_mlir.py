"""torch-mlir reads the torch form and lowers it, and IREE's importer writes the same ops."""

import re
import subprocess

import iree_lab
import models
import pytest
from test_iree import DETERMINISTIC, NOT_IN_THE_FORM

OPT = iree_lab.torch_mlir_opt()
pytestmark = pytest.mark.skipif(
    OPT is None, reason="the wheel torch-mlir was not found: third_party/fetch.sh installs it where there is one"
)
TO_LINALG = (
    "builtin.module(func.func(convert-torch-onnx-to-torch),torch-onnx-to-torch-backend-pipeline,"
    "torch-backend-to-linalg-on-tensors-backend-pipeline)"
)
IMPORTER = iree_lab.program("iree-import-onnx")
DIFFERENT = {
    # Calls of functions are inlined by us, and operators without meaning to the importer.
    "function_calls",
    "function_random",
    # The importer writes operands that are left out at the end, and results that nobody asks for.
    "absent_names",
    # It takes types of values in bodies for those of outer values with the same name, and knows none of these operators.
    "loop_shadows",
    "scan_captures",
    "contrib_operators",
    # It knows what an optional holds.
    "optionals",
}
"""Models of which the importer says something else."""


def opt(text, *arguments):
    done = subprocess.run([str(OPT), str(text), *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:2000]
    return done.stdout


def export(remat_opt, model, out, *arguments):
    done = remat_opt(model, "-o", out, "--mlir-barriers", "none", *arguments)
    assert done.returncode == 0, done.stderr
    return out


def operators(text):
    """What a module does, op by op, without the names of its values. Constants are where their readers want them."""
    lines = re.findall(r'torch\.operator ("onnx\..*)', text)
    return [re.sub(r"%\w+(#\d+)?", "%", line).strip() for line in lines if not line.startswith('"onnx.Constant"')]


@pytest.mark.parametrize("name", [m.stem for m in models.FEATURES if m.stem not in NOT_IN_THE_FORM])
def test_torch_mlir_reads_the_same_ops_as_from_the_importer(name, remat_opt, tmp_path):
    path = next(m for m in models.FEATURES if m.stem == name)
    arguments = models.Facts(path).arguments
    ours = opt(export(remat_opt, path, tmp_path / "ours.mlir", "--budget", "none", *arguments))
    assert operators(ours)
    if IMPORTER is None or name in DIFFERENT or arguments:
        return
    theirs = tmp_path / "theirs.mlir"
    done = subprocess.run([str(IMPORTER), str(path), "-o", str(theirs)], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("the importer refuses the model")
    found, expected = operators(ours), operators(opt(theirs))
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        # We may know an extent that the importer leaves open.
        assert re.fullmatch(re.escape(theirs).replace(r"\[\?,", r"\[(?:\?|\d+),"), ours), (ours, theirs)


@pytest.mark.parametrize("budget", ["none", "70%"])
@pytest.mark.parametrize("path", models.OWN, ids=lambda path: path.stem)
def test_torch_mlir_lowers_to_linalg(path, budget, remat_opt, tmp_path):
    search = [] if budget == "none" else DETERMINISTIC
    text = export(remat_opt, path, tmp_path / "model.mlir", "--budget", budget, *search)
    lowered = opt(text, f"--pass-pipeline={TO_LINALG}")
    assert "linalg.generic" in lowered
    assert "torch." not in lowered
