"""The wheel as users have it: in an environment of its own."""

import json
import os
import subprocess
import sys

import models
import pytest

BUILT = sorted((models.ROOT / "target" / "test-wheels").glob("remat_opt-*.whl"))
PINNED = models.ROOT / "third_party" / "wheels"

REQUIRED = "wheel" in os.environ.get("REMAT_TESTS_REQUIRE", "").split(",")

is_there = pytest.mark.skipif(
    not BUILT and not REQUIRED, reason="there is no wheel: `make test-wheel` builds it where maturin can be installed"
)


def is_pinned(package):
    """Whether there is a wheel of a package, or has to be."""
    return REQUIRED or any(PINNED.glob(f"{package}-*.whl"))


class Environment:
    """Programs of an environment that holds the wheel and what it depends on."""

    def __init__(self, folder, *packages):
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        self.folder = folder / "bin"
        pip = [self.folder / "python", "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
        subprocess.run([*pip, "--no-index", "--find-links", PINNED, BUILT[-1], *packages], check=True)
        # The library has to be found in the environment of the interpreter, and nowhere else.
        hidden = ("REMAT_ORT_LIBRARY", "ORT_DYLIB_PATH", "VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH")
        variables = {name: value for name, value in os.environ.items() if name not in hidden}
        self.variables = {**variables, "PATH": "/usr/bin:/bin"}

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
            self.run("python", "-c", "import json, sys, remat_opt\n" + code, *arguments, **keywords).splitlines()[-1]
        )
