"""Fixtures of the tests of `remat_opt.torch`. They are skipped where PyTorch is missing."""

import contextlib
import importlib.util
import json
import os
import subprocess
import sys

import pytest

sys.path.append(os.path.join(os.path.dirname(__file__), "..", "python"))

import need  # noqa: E402


def pytest_configure(config):
    config.addinivalue_line("markers", "measures: the ops of each graph are measured in a process of its own")


for module in ("torch", "remat_opt"):
    need.require("torch", importlib.util.find_spec(module) is not None, f"there is no {module}: `make test-torch` installs it")


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory):
    """Costs and plans of these tests lie in a folder of their own; what Inductor compiles, in one for all processes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        base = tmp_path_factory.getbasetemp()
        shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
        patch.setenv("TORCHINDUCTOR_CACHE_DIR", str(shared / "inductor"))
        yield


@pytest.fixture(autouse=True)
def _fresh_compiler():
    """Each test compiles anew, with one thread."""
    import torch
    from remat_opt import torch as remat

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch._dynamo.reset()
    remat.clear_reports()
    yield
    torch.set_num_threads(threads)


class Measurer:
    """One process that measures the ops of all tests, instead of one for each graph: to start takes seconds."""

    def __init__(self):
        from remat_opt.torch import _measure, _measure_child, _metered

        path = os.pathsep.join(path for path in sys.path if path)
        line = [sys.executable, _measure_child.__file__]
        self.meter = contextlib.ExitStack()
        environment = self.meter.enter_context(_metered.metered()) | {"PYTHONPATH": path, "CUDA_VISIBLE_DEVICES": ""}
        self.process = subprocess.Popen(line, env=environment, text=True, stdin=-1, stdout=-1, stderr=subprocess.DEVNULL)
        self.usual = _measure._child

    def child(self, calls, environment):
        """Takes the place of `_measure._child`."""
        import torch

        if self.process.poll() is not None:
            return self.usual(calls, environment)
        self.process.stdin.write(json.dumps({"threads": torch.get_num_threads(), "calls": calls}) + "\n")
        self.process.stdin.flush()
        return [json.loads(line) for line in (self.process.stdout.readline() for _ in calls) if line]

    def end(self):
        """Ends the process."""
        self.process.communicate()
        self.meter.close()


@pytest.fixture(scope="session")
def _measurer():
    measurer = Measurer()
    yield measurer
    measurer.end()


@pytest.fixture(autouse=True)
def _one_process_measures(request, _measurer, monkeypatch):
    """What a process does that measures for one graph is tested with the mark `measures`."""
    from remat_opt.torch import _measure

    if request.node.get_closest_marker("measures") is None:
        monkeypatch.setattr(_measure, "_child", _measurer.child)
