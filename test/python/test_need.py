"""What CI has to have: where it could be installed and is not there, it fails."""

import os
import subprocess

import models
import need
import pytest

FETCH = models.ROOT / "third_party" / "fetch.sh"


@pytest.mark.parametrize("name", ["browser", "mlir", "torch"])
def test_what_is_required_fails_and_what_is_not_is_skipped(monkeypatch, name):
    need.require(name, True, "it is there")
    monkeypatch.setattr(need, "REQUIRED", frozenset())
    with pytest.raises(pytest.skip.Exception, match="no such thing"):
        need.require(name, False, "no such thing")
    monkeypatch.setattr(need, "REQUIRED", frozenset({name}))
    with pytest.raises(pytest.fail.Exception, match=f"no such thing; REMAT_TESTS_REQUIRE names {name}"):
        need.require(name, False, "no such thing")


def programs(folder, **scripts):
    """A folder with programs that answer as these lines of a shell say, and with those that the script itself runs."""
    for name, script in scripts.items():
        path = folder / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
    for name in ("bash", "sh", "dirname", "id", "cmp", "env", "grep", "sed", "cat"):
        (folder / name).symlink_to(next(f"{place}/{name}" for place in ("/usr/bin", "/bin") if os.path.exists(f"{place}/{name}")))
    return folder


def possible(folder, tmp_path):
    """What the script says, in a copy of its folder without anything that was installed."""
    place = tmp_path / "third_party"
    place.mkdir()
    for name in ("fetch.sh", "requirements.txt", "requirements-torch.txt"):
        (place / name).write_bytes((FETCH.parent / name).read_bytes())
    (place / "fetch.sh").chmod(0o755)
    variables = {"PATH": str(folder), "MLIR_SYS_220_PREFIX": str(tmp_path / "no-llvm")}
    said = subprocess.run(
        [str(folder / "bash"), str(place / "fetch.sh"), "possible"], env=variables, capture_output=True, text=True, check=True
    )
    return said.stdout.strip()


def test_what_could_be_installed_has_to_be_there(tmp_path):
    folder = tmp_path / "bin"
    folder.mkdir()
    apt = {"apt-get": "exit 0", "sudo": "exit 0"}
    pip = "echo 'torch (2.15.0)'; echo 'Available versions: 2.15.0, 2.14.1'"
    programs(folder, **{**apt, "apt-cache": "exit 0", "python3": pip})
    assert possible(folder, tmp_path) == "mlir,browser,torch"


def test_what_no_source_has_is_not_required(tmp_path):
    folder = tmp_path / "bin"
    folder.mkdir()
    programs(folder, **{"apt-get": "exit 0", "sudo": "exit 0", "apt-cache": "exit 100", "python3": "exit 1"})
    assert possible(folder, tmp_path) == ""


def test_ci_requires_what_the_script_says():
    text = (models.ROOT / ".ci" / "run").read_text()
    assert "third_party/fetch.sh torch" in text
    assert "$(third_party/fetch.sh possible)" in text
