"""The workflows of the repository name what is there. They run on machines of GitHub only."""

import re
import tomllib

import pytest
import yaml
from models import ROOT

FILES = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
MAKEFILE = (ROOT / "Makefile").read_text()


def steps(path):
    return [step for job in yaml.safe_load(path.read_text())["jobs"].values() for step in job["steps"]]


def commands(path):
    """The lines that run, without comments."""
    return [line.strip() for step in steps(path) for line in step.get("run", "").splitlines() if not line.lstrip().startswith("#")]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_files_and_recipes_of_a_workflow_are_there(path):
    lines = commands(path)
    named = {one for line in lines for one in re.findall(r"(?:^|[ =])((?:test|tools|passes|examples)/[\w/.-]+)", line)}
    assert named and not [one for one in named if not (ROOT / one).exists() and not one.endswith(".cdx.json")]
    recipes = {one for line in lines for one in re.findall(r"(?:^|; )make ([a-z-]+)", line)}
    assert recipes and not [one for one in recipes if not re.search(rf"^{one}:", MAKEFILE, re.MULTILINE)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_job_says_where_it_runs_and_only_publishing_may_write(path):
    workflow = yaml.safe_load(path.read_text())
    assert workflow["permissions"] == {"contents": "read"}
    for name, job in workflow["jobs"].items():
        assert job["runs-on"]
        assert all(("run" in step) != ("uses" in step) for step in job["steps"])
        assert name == "publish" or "permissions" not in job
    assert workflow["jobs"]["publish"]["if"] == "startsWith(github.ref, 'refs/tags/v')"


def test_a_wheel_is_built_for_every_system_that_the_package_names():
    (path,) = FILES
    runs = yaml.safe_load(path.read_text())["jobs"]["wheel"]["strategy"]["matrix"]["include"]
    built = {one["target"] for one in runs}
    named = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    systems = {one.removeprefix("Operating System :: ") for one in named if one.startswith("Operating System")}
    assert systems == {"MacOS", "Microsoft :: Windows", "POSIX :: Linux"}
    assert built == {
        "x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu", "x86_64-unknown-linux-musl",
        "x86_64-apple-darwin", "aarch64-apple-darwin", "x86_64-pc-windows-msvc",
    }  # fmt: skip


def test_the_version_of_the_release_is_that_of_the_crates():
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]
    version = workspace["package"]["version"]
    stated = [one["version"] for one in workspace["dependencies"].values() if isinstance(one, dict) and "path" in one and "version" in one]
    assert stated and set(stated) == {version}
    optimum = tomllib.loads((ROOT / "tools" / "python" / "optimum" / "pyproject.toml").read_text())["project"]
    assert optimum["version"] == version
    # The step that holds the tag against it looks for this line.
    assert f'version = "{version}"' in (ROOT / "Cargo.toml").read_text().splitlines()
