"""The action: what it installs, and the step that rewrites a model or checks models."""

import html
import json
import os
import re
import subprocess
import sys

import models
import pytest
import wheel

pytestmark = wheel.is_there

MODEL = models.ROOT / "test" / "models" / "unet_tiny_train.onnx"
ACTION = models.ROOT / "tools" / "python" / "action"
INPUTS = ("MODEL", "OUTPUT", "BUDGET", "LIMIT", "BASELINE", "MAX_GROWTH", "ARGUMENTS")


def step(environment, folder, **inputs):
    """The step of the action with these inputs: how it ends, what it prints, its outputs and the summary of the run."""
    files = {"GITHUB_OUTPUT": folder / "outputs", "GITHUB_STEP_SUMMARY": folder / "summary", "RUNNER_TEMP": folder}
    given = {**dict.fromkeys(INPUTS, ""), **files, **inputs, "GITHUB_SHA": "1f2e3d"}
    done = subprocess.run(
        [environment.folder / "python", ACTION / "run.py"],
        env={**environment.variables, **{name: str(value) for name, value in given.items()}},
        capture_output=True,
        text=True,
        check=False,
    )
    outputs, lines = {}, (folder / "outputs").read_text().splitlines() if (folder / "outputs").exists() else []
    while lines:
        name, end = lines.pop(0).split("<<")
        at = lines.index(end)
        outputs[name], lines = "\n".join(lines[:at]), lines[at + 1 :]
    summary = (folder / "summary").read_text() if (folder / "summary").exists() else ""
    return done, outputs, summary


@pytest.mark.parametrize(("budget", "status"), [("80%", 0), ("1KiB", 1)])
def test_the_step_of_the_action_writes_outputs_and_a_summary(environment, tmp_path, budget, status):
    limits = " ".join(map(str, [*wheel.LIMITS, "--fission", "off"]))
    small = tmp_path / "small.onnx"
    done, outputs, summary = step(environment, tmp_path, MODEL=MODEL, OUTPUT=small, BUDGET=budget, ARGUMENTS=limits)
    assert done.returncode == status, done.stderr
    if status:
        assert done.stdout.startswith("::error title=remat-opt::")
        assert "dec.dx" in done.stdout
        assert not small.exists()
        return
    assert outputs["model"] == str(small)
    report = json.loads((tmp_path / "small.json").read_text())
    assert int(outputs["peak-bytes"]) == report["measured"]["after"]["arena_off"]
    assert (tmp_path / "small.html").exists()
    assert all(html.escape(line) in summary for entry in report["summary"] for line in entry["lines"])


def test_the_step_of_the_action_checks_models_and_comments_on_them(environment, tmp_path):
    baseline = tmp_path / "memory.json"
    both = f"{MODEL}\n  {models.ROOT / 'test' / 'models' / 'mlp_tiny_train.onnx'}\n"
    done, outputs, summary = step(environment, tmp_path, MODEL=both, LIMIT="64MiB", ARGUMENTS=f"--write-baseline {baseline}")
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "remat-opt-check.json").read_text())
    assert outputs["report"] == str(tmp_path / "remat-opt-check.json")
    assert int(outputs["peak-bytes"]) == max(model["measured_bytes"] for model in report["models"])
    assert summary.strip() == outputs["comment"].strip()
    assert outputs["comment"].startswith("<!-- remat-opt check -->\n### Memory\n")
    assert outputs["comment"].count("64.0 MiB") == 2
    # The models grew.
    before = json.loads(baseline.read_text())
    assert before["commit"] == "1f2e3d"
    for model in before["models"]:
        model["measured_bytes"] //= 2
    baseline.write_text(json.dumps(before))
    done, outputs, summary = step(environment, tmp_path, MODEL=MODEL, BASELINE=baseline, MAX_GROWTH="5%")
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("::error title=remat-opt::")
    assert "1 model over the limit" in outputs["comment"]
    assert outputs["comment"].strip() in summary


def test_the_step_of_the_action_says_what_is_wrong_with_its_inputs(environment, tmp_path):
    for inputs, status, why in [
        ({"OUTPUT": "small.onnx", "LIMIT": "1MiB", "MAX_GROWTH": "5%"}, 2, "`limit`, `max-growth`"),
        ({"BUDGET": "80%"}, 2, "`budget`"),
        ({"BASELINE": tmp_path / "none.json"}, 2, "exit status 2"),
        ({"MAX_GROWTH": "5%"}, 2, "exit status 2"),
    ]:
        done, outputs, _ = step(environment, tmp_path, MODEL=MODEL, **inputs)
        assert done.returncode == status, done.stderr
        assert done.stdout.startswith("::error title=remat-opt::")
        assert why in done.stdout
        assert not outputs


def test_the_action_names_the_step_and_its_outputs():
    yaml = pytest.importorskip("yaml")
    action = yaml.safe_load((models.ROOT / "action.yml").read_text())
    code = (ACTION / "run.py").read_text()
    install, run = action["runs"]["steps"]
    assert "tools/python/action/install.sh" in install["run"]
    assert "tools/python/action/run.py" in run["run"]
    assert sorted(run["env"]) == sorted(INPUTS)
    assert all(f'"{name}"' in code for name in [*INPUTS, *action["outputs"]])
    given = {value for one in (install, run) for value in one["env"].values()}
    assert given == {f"${{{{ inputs.{name} }}}}" for name in action["inputs"]}
    assert all(output["value"] == f"${{{{ steps.run.outputs.{name} }}}}" for name, output in action["outputs"].items())


def test_what_the_guide_shows_of_the_action_is_there():
    yaml = pytest.importorskip("yaml")
    action = yaml.safe_load((models.ROOT / "action.yml").read_text())
    page = (models.ROOT / "docs" / "guides" / "automation.md").read_text()
    steps = [step for block in re.findall(r"^```yaml\n(- .*?)^```", page, re.M | re.S) for step in yaml.safe_load(block)]
    ours = [step for step in steps if step["uses"].startswith("remat-opt/remat-opt@")]
    assert len(ours) == 2
    for step in ours:
        assert set(step["with"]) <= set(action["inputs"])
        assert {name for name, given in action["inputs"].items() if given.get("required")} <= set(step["with"])
    shown = re.findall(r"steps\.(\w+)\.outputs\.([\w-]+)", page)
    assert shown
    assert set(shown) <= {(step["id"], name) for step in ours for name in action["outputs"]}


RELEASES = """#!{python}
import os, sys
if sys.argv[1:3] == ["-m", "venv"]:
    os.makedirs(sys.argv[3] + "/bin")
    os.symlink(__file__, sys.argv[3] + "/bin/pip")
else:
    wanted = sys.argv[-1]
    with open(os.environ["LOG"], "a") as log:
        print(*[word for word in sys.argv[2:] if word not in ("--quiet", "--disable-pip-version-check")], file=log)
    sys.exit(wanted.startswith("remat-opt") and wanted not in os.environ["RELEASES"].split())
"""
"""An index of packages with the releases that are named, as `python3` and as `pip`."""


@pytest.mark.parametrize(
    ("version", "releases", "status", "installed"),
    [
        ("", "remat-opt[proofs]", 0, ["--only-binary remat-opt remat-opt[proofs]"]),
        ("", "", 0, ["--only-binary remat-opt remat-opt[proofs]", "sources[proofs]"]),
        ("0.1.0", "remat-opt[proofs]==0.1.0", 0, ["--only-binary remat-opt remat-opt[proofs]==0.1.0"]),
        ("9.9.9", "remat-opt[proofs]", 1, ["--only-binary remat-opt remat-opt[proofs]==9.9.9"]),
        ("source", "remat-opt[proofs]", 0, ["sources[proofs]"]),
    ],
)
def test_the_action_installs_a_release_and_builds_where_there_is_none(tmp_path, version, releases, status, installed):
    python = tmp_path / "programs" / "python3"
    python.parent.mkdir()
    python.write_text(RELEASES.format(python=sys.executable))
    python.chmod(0o755)
    path = f"{python.parent}:/usr/bin:/bin"
    variables = {"VERSION": version, "RELEASES": releases, "LOG": str(tmp_path / "log"), "PATH": path}
    line = [ACTION / "install.sh", tmp_path / "environment", "sources"]
    done = subprocess.run(line, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    assert (tmp_path / "log").read_text().splitlines() == installed
    assert ("::notice" in done.stdout) == (len(installed) == 2)


def test_the_action_installs_the_wheel(tmp_path):
    folder = tmp_path / "environment"
    wheels = f"{wheel.PINNED} {wheel.BUILT[-1].parent}"
    variables = {**os.environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": wheels, "VERSION": ""}
    subprocess.run([ACTION / "install.sh", folder, "no-such-folder"], env=variables, check=True)
    said = subprocess.run([folder / "bin" / "remat-opt", "--version"], capture_output=True, text=True, check=True).stdout
    assert said.split()[0] == "remat-opt"
