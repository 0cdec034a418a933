"""Hooks for pre-commit: what they run, and that pre-commit installs and runs them with the wheel."""

import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys

import models
import need
import pytest
import wheel

pytestmark = wheel.is_there

HOOKS = models.ROOT / ".pre-commit-hooks.yaml"
MODEL = models.ROOT / "test" / "models" / "unet_tiny_train.onnx"
OTHER = models.ROOT / "test" / "models" / "mlp_tiny_train.onnx"


@pytest.fixture(scope="module")
def hooks():
    yaml = pytest.importorskip("yaml")
    return {hook["id"]: hook for hook in yaml.safe_load(HOOKS.read_text())}


def test_the_guide_shows_the_hook_with_the_wheel(hooks):
    yaml = pytest.importorskip("yaml")
    page = (models.ROOT / "docs" / "guides" / "automation.md").read_text()
    block = re.search(r"^```yaml\n(repos:.*?)^```", page, re.M | re.S)
    (shown,) = yaml.safe_load(block[1])["repos"][0]["hooks"]
    assert shown.pop("additional_dependencies") == ["remat-opt"]
    assert shown.pop("args")
    assert shown.items() <= hooks["remat-opt-check"].items()


@pytest.fixture
def repository(tmp_path):
    """A repository with a model, and a copy of it."""
    for name in ("model.onnx", "copy.onnx"):
        shutil.copy(MODEL, tmp_path / name)
    shutil.copy(OTHER, tmp_path / "other.onnx")
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    subprocess.run(["git", "add", "."], cwd=tmp_path, check=True)
    return tmp_path


CASES = [
    ("remat-opt-check", ["--limit", "64MiB"], 0),
    ("remat-opt-check", ["--limit", "1MiB"], 1),
    ("remat-opt-verify", ["model.onnx", "copy.onnx"], 0),
    ("remat-opt-verify", ["model.onnx", "other.onnx"], 1),
]


@pytest.mark.parametrize(("name", "arguments", "status"), CASES)
def test_a_hook_runs_what_it_says(environment, hooks, repository, name, arguments, status):
    hook = hooks[name]
    assert hook["language"] == "python"
    program, *words = shlex.split(hook["entry"])
    files = ["model.onnx", "copy.onnx"] if hook.get("pass_filenames", True) else []
    environment.run(program, *words, *arguments, *files, status=status, cwd=repository)


def test_pre_commit_runs_the_hooks_with_the_wheel(hooks, repository, tmp_path_factory):
    is_there = importlib.util.find_spec("pre_commit") is not None and wheel.is_pinned("pre_commit")
    need.require("wheel", is_there, "pre-commit is not installed")
    home = tmp_path_factory.mktemp("pre-commit")
    # What it installs comes from the wheels that are pinned.
    quiet = {"GIT_CONFIG_GLOBAL": os.devnull, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheel.PINNED)}
    variables = {**os.environ, **quiet, "PRE_COMMIT_HOME": str(home)}

    def pre_commit(*line):
        line = [sys.executable, "-m", "pre_commit", *map(str, line)]
        done = subprocess.run(line, cwd=repository, env=variables, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    status, said = pre_commit("validate-manifest", HOOKS)
    assert status == 0, said
    for name, arguments, expected in CASES:
        hook = {**hooks[name], "additional_dependencies": [str(wheel.BUILT[-1])], "args": arguments}
        # JSON is YAML.
        (repository / "config.yaml").write_text(json.dumps({"repos": [{"repo": "local", "hooks": [hook]}]}))
        status, said = pre_commit("run", "--config", "config.yaml", "--all-files", name)
        assert status == expected, said
        assert ("model.onnx" in said) == bool(expected), said
