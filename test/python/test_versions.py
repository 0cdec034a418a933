"""Planned memory in other versions of ONNX Runtime: those in the virtual environments that `REMAT_ORT_ENVIRONMENTS` names.

    REMAT_ORT_ENVIRONMENTS=/envs/ort-1.23.2:/envs/ort-1.27.0 python -m pytest -rs test/python/test_versions.py

Each has `onnxruntime` and `numpy`. Versions before 1.23 have to decline, and to compute what they compute.
"""

import json
import os
import pathlib
import subprocess

import models
import pytest

NAMED = os.environ.get("REMAT_ORT_ENVIRONMENTS", "")
ENVIRONMENTS = [pathlib.Path(name) for name in NAMED.split(os.pathsep) if name]
MODELS = models.OWN + [path for path in models.SHARED if path.stem == "unet_infer"]
OLDEST = (1, 23)

FOLLOWS = """
import json, sys
sys.path.insert(0, sys.argv[1])
from arena import Arena, Model, bits, options
path, plan, library = sys.argv[2:]
model = Model(path, options(library, plan))
same = all(bits(model.run()) == model.expected for _ in range(3))
print(json.dumps({"same": same} | Arena(library).figures()))
"""


@pytest.fixture(
    params=[pytest.param(e, id=e.name) for e in ENVIRONMENTS] or [pytest.param(None, id="other-versions")]
)
def environment(request):
    if request.param is None:
        pytest.skip("REMAT_ORT_ENVIRONMENTS names no virtual environments: one version was tested")
    return request.param


def library_of(environment):
    found = environment.glob("lib/python3*/site-packages/onnxruntime/capi/libonnxruntime.so.*")
    return next(iter(found))


def version_of(environment):
    return tuple(int(number) for number in library_of(environment).name.partition(".so.")[2].split("."))


def runs_in(environment, path, arena):
    run = subprocess.run(
        [environment / "bin" / "python", "-c", FOLLOWS, models.ROOT / "test" / "python", path, arena["file"], arena["library"]],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout), run.stderr


@pytest.mark.parametrize("network", MODELS, ids=lambda path: path.stem)
def test_a_plan_is_followed_or_declined(environment, network, remat_opt, tmp_path):
    is_old = version_of(environment) < OLDEST
    out = tmp_path / "out.onnx"
    arguments = ["--budget", "none", "--time-limit", "3s", "--format", "json"]
    named = ["--ort-library", library_of(environment)]
    run = remat_opt(network, "-o", out, *arguments, *named)
    if is_old:
        assert run.returncode == 2, run.stderr
        run = remat_opt(network, "-o", out, *arguments)
    assert run.returncode == 0, run.stderr
    figures, said = runs_in(environment, out, json.loads(run.stdout)["arena_plan"])
    assert figures["same"]
    assert (figures["missed"], figures["refused"]) == (0, 0), figures
    assert figures["runs"] == (0 if is_old else 3)
    assert ("is older than" in said) == is_old, said
