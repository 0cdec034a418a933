"""Finds the program and the models; a missing one skips with its reason."""

import json
import os
import pathlib
import subprocess

import browser as browsers
import models
import pytest
import wheel
from matrix_cases import matrix
from matrix_lab import Lab


def pytest_generate_tests(metafunc):
    if "model" in metafunc.fixturenames:
        params = [pytest.param(m, id=m.stem) for m in models.OWN + models.LARGER]
        if not models.SHARED:
            params.append(pytest.param(None, id="shared-models"))
        metafunc.parametrize("model", params, scope="module")
    if "feature" in metafunc.fixturenames:
        metafunc.parametrize("feature", [pytest.param(m, id=m.stem) for m in models.FEATURES], scope="module")
    if "case" in metafunc.fixturenames:
        pairs = [pytest.param(case, variant, id=f"{variant.name}-{case.name}") for case, variant in matrix()]
        metafunc.parametrize(("case", "variant"), pairs, scope="session")


@pytest.fixture(scope="module")
def model_path(model):
    if model is None:
        pytest.skip("the larger models were not found: only the project's own ones were tested")
    return model


def built_program():
    """The program that was built last, as a test run leaves it or `cargo build --release`."""
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", models.ROOT / "target"))
    found = [target / profile / "remat-opt" for profile in ("debug", "release")]
    return max((p for p in found if p.exists()), key=lambda p: p.stat().st_mtime, default=None)


@pytest.fixture(scope="session")
def remat_opt():
    """Runs the program; returns the finished process."""
    program = built_program()
    if program is None:
        pytest.fail("remat-opt is not built: run `cargo build -p remat-opt` first")

    def run(*args):
        return subprocess.run([str(program), *map(str, args)], capture_output=True, text=True, check=False)

    return run


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """A Chromium with one page."""
    with browsers.Browser(tmp_path_factory.mktemp("browser")) as browser:
        yield browser


@pytest.fixture(scope="session")
def lab(request, remat_opt, tmp_path_factory):
    """Rewrites and measures what the selected tests of the matrix ask for, ahead of them."""
    selected = [item.callspec.params for item in request.session.items if hasattr(item, "callspec")]
    wanted = dict.fromkeys((params["case"], params["variant"]) for params in selected if "case" in params)
    with Lab(remat_opt, tmp_path_factory.mktemp("matrix"), os.cpu_count()) as lab:
        lab.prepare(wanted)
        yield lab


@pytest.fixture(scope="session")
def environment(tmp_path_factory):
    """The wheel in an empty environment, one for all processes of the tests."""
    packages = ["networkx", "ray", "nbclient", "ipykernel"]
    pinned = [package for package in packages if wheel.is_pinned(package)]
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    return wheel.Environment(shared / "wheel", *pinned)


@pytest.fixture(scope="session")
def large(tmp_path_factory):
    """A graph whose search goes on for long: for a third of the peak more than 20 seconds, for the lowest one two."""
    count = 400
    nodes = [{"id": str(at), "cost_ram": 1 + at * 7919 % 100, "cost_cpu": 1 + at * 104729 % 50} for at in range(count)]
    links = [{"source": str(before), "target": str(at)} for at in range(1, count) for before in {at - 1, at * 31 % at, at // 2}]
    path = tmp_path_factory.mktemp("large") / "large.json"
    path.write_text(
        json.dumps({"directed": True, "multigraph": False, "graph": {"name": "large"}, "nodes": nodes, "links": links})
    )
    return path
