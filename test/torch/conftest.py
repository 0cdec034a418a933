"""Fixtures of the tests of `remat_opt.torch`. They are skipped where PyTorch is missing."""

import importlib.util
import os
import sys

import pytest

sys.path.append(os.path.join(os.path.dirname(__file__), "..", "python"))

import need  # noqa: E402

for module in ("torch", "remat_opt"):
    need.require("torch", importlib.util.find_spec(module) is not None, f"there is no {module}: `make test-torch` installs it")


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory):
    """Costs and plans of these tests lie in a folder of their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path_factory.mktemp("inductor")))
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
