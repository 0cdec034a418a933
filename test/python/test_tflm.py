"""Plans for TensorFlow Lite Micro: its interpreter follows them."""

import json
import os
import subprocess
import sys
import zipfile

import models
import pytest
import wheel
from need import require
from planners import tflm

pytestmark = wheel.is_there


@pytest.fixture(scope="module")
def variables(tmp_path_factory):
    """The package as users have it, beside that of the runtime."""
    folder = tmp_path_factory.mktemp("installed")
    with zipfile.ZipFile(wheel.BUILT[-1]) as archive:
        archive.extractall(folder)
    paths = [str(folder), str(models.ROOT / "test" / "python"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def test_the_interpreter_follows_a_plan_and_computes_the_same_bits(variables, tmp_path):
    require("tflm", not tflm.missing(), tflm.missing())
    lab = models.ROOT / "test" / "python" / "tflm_lab.py"
    run = subprocess.run([sys.executable, lab, tmp_path], env=variables, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    rows = json.loads(run.stdout)
    for row in rows:
        assert row["planned"] == row["height"] == row["load"] <= row["own"], row
        assert row["is_same"] and row["is_read"] and row["is_replaced"], row
    assert any(row["planned"] < row["own"] for row in rows), rows


def test_what_a_plan_holds_is_read_again_and_what_it_cannot_hold_is_refused(variables):
    code = """
from remat_opt import errors, tflm
import struct
content = tflm.metadata([None, 0, 48])
assert struct.unpack("<6i", content) == (1, 0, 3, -1, 0, 48)
assert tflm._parsed(content) == [None, 0, 48]
for wrong in ([8], [-16], [1 << 31]):
    try:
        tflm.metadata(wrong)
    except errors.UsageError as error:
        assert "tensor 0 cannot lie" in str(error)
    else:
        raise AssertionError(wrong)
for wrong in (content[:-1], content[:-4], b"", struct.pack("<4i", 1, 1, 1, 0)):
    try:
        tflm._parsed(wrong)
    except errors.ModelError:
        continue
    raise AssertionError(wrong)
try:
    tflm.offsets(b"no model")
except errors.ModelError:
    print("done")
"""
    run = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True)
    assert (run.returncode, run.stdout) == (0, "done\n"), run.stderr
