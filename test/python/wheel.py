"""The wheel as users have it: in an environment of its own."""

import fcntl
import importlib.metadata
import json
import os
import pathlib
import subprocess
import sys

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILT = sorted((ROOT / "target" / "test-wheels").glob("remat_opt-*.whl"))
PINNED = ROOT / "third_party" / "wheels"

REQUIRED = "wheel" in os.environ.get("REMAT_TESTS_REQUIRE", "").split(",")

is_there = pytest.mark.skipif(
    not BUILT and not REQUIRED, reason="there is no wheel: `make test-wheel` builds it where maturin can be installed"
)


def is_pinned(package):
    """Whether there is a wheel of a package, or has to be."""
    return REQUIRED or any(PINNED.glob(f"{package}-*.whl"))


SEARCH = 'SEARCH = {"step_limit": 1000, "threads": 1, "time_limit": 600}'
"""How code in the environment searches: the same work on every machine, whatever else runs there."""
LIMITS = ("--step-limit", 1000, "--threads", 1, "--time-limit", "10m")
"""The same on its command line."""


class Environment:
    """Programs of an environment that holds the wheel and what it depends on. Processes that name one folder share it."""

    def __init__(self, folder, *packages):
        self.folder = folder / "bin"
        # The library has to be found in the environment of the interpreter, and nowhere else.
        hidden = ("REMAT_ORT_LIBRARY", "ORT_DYLIB_PATH", "VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH")
        variables = {name: value for name, value in os.environ.items() if name not in hidden}
        self.variables = {**variables, "PATH": "/usr/bin:/bin"}
        with open(folder.with_suffix(".lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (folder / "is_complete").exists():
                subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
                self.install(BUILT[-1], *packages)
                (folder / "is_complete").touch()

    def install(self, *packages):
        """Installs what is here already: nothing is asked of a network."""
        pip = [sys.executable, "-m", "pip", "--python", self.folder / "python", "--quiet", "--disable-pip-version-check"]
        line = [*pip, "install", "--no-compile", "--no-index", "--find-links", PINNED, *packages]
        subprocess.run(line, env=self.variables, check=True)

    def link(self, *names, first=()):
        """Packages that take gigabytes, and what they depend on, as links to where tests have them: in folders that come first,
        else in the environment of the tests. What is installed already stays."""
        (here,) = (self.folder.parent / "lib").glob("python*/site-packages")
        paths, seen, wanted = [*map(str, first), *sys.path], set(), list(names)
        while wanted:
            name = canonicalize_name(wanted.pop())
            found = next(iter(importlib.metadata.distributions(name=name, path=paths)), None)
            if name in seen or found is None:
                continue
            seen.add(name)
            needs = [Requirement(one) for one in found.requires or []]
            wanted += [one.name for one in needs if one.marker is None or one.marker.evaluate({"extra": ""})]
            for part in {file.parts[0] for file in found.files} - {"..", "bin", "__pycache__"}:
                if not (here / part).exists():
                    (here / part).symlink_to(found.locate_file(part))

    def start(self, program, *arguments, **keywords):
        # Shells start what runs in the background with this signal ignored, and Python leaves it so.
        heard = ["env", "--default-signal=INT"]
        line = [*heard, str(self.folder / program), *map(str, arguments)]
        return subprocess.Popen(line, env=self.variables, text=True, stdout=-1, stderr=-1, **keywords)

    def run(self, program, *arguments, status=0, **keywords):
        process = self.start(program, *arguments, **keywords)
        out, err = process.communicate()
        assert process.returncode == status, err
        return out

    def python(self, code, *arguments, **keywords):
        """What a program prints as JSON in its last line."""
        return json.loads(
            self.run("python", "-c", f"import json, sys, remat_opt\n{SEARCH}\n{code}", *arguments, **keywords).splitlines()[-1]
        )
