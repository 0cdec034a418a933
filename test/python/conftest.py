"""Finds the program and the models; a missing one skips with its reason."""

import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
OWN_MODELS = sorted((ROOT / "test" / "models").glob("*.onnx"))
FEATURES = sorted((ROOT / "test" / "models" / "features").glob("*.onnx"))
SHARED_MODELS = sorted((ROOT.parent / "shared" / "models").glob("*.onnx"))


def pytest_generate_tests(metafunc):
    if "model" in metafunc.fixturenames:
        models = OWN_MODELS + SHARED_MODELS
        params = [pytest.param(m, id=m.stem) for m in models]
        if not SHARED_MODELS:
            params.append(pytest.param(None, id="shared-models"))
        metafunc.parametrize("model", params, scope="module")
    if "feature" in metafunc.fixturenames:
        metafunc.parametrize("feature", [pytest.param(m, id=m.stem) for m in FEATURES], scope="module")


@pytest.fixture(scope="module")
def model_path(model):
    if model is None:
        pytest.skip("the larger models are not here: only the project's own ones were tested")
    return model


@pytest.fixture(scope="session")
def remat_opt():
    """Runs the program; returns the finished process."""
    found = [ROOT / "target" / "release" / "remat-opt"]
    target = subprocess.run(
        ["cargo", "metadata", "--format-version=1", "--no-deps"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if target.returncode == 0:
        import json

        found.insert(0, pathlib.Path(json.loads(target.stdout)["target_directory"]) / "release" / "remat-opt")
    program = next((p for p in found if p.exists()), None)
    if program is None:
        pytest.fail("remat-opt is not built: run `cargo build --release -p remat-opt` first")

    def run(*args):
        return subprocess.run([str(program), *map(str, args)], capture_output=True, text=True, check=False)

    return run
