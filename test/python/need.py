"""What tests need that a machine may lack: they are skipped with the reason, and fail where it has to be there."""

import os

import pytest

REQUIRED = frozenset(os.environ.get("REMAT_TESTS_REQUIRE", "").split(","))
"""What `.ci/run` says that has to be there: `browser`, `mlir`, `torch`, ..."""

NIGHTLY = bool(os.environ.get("REMAT_NIGHTLY"))
"""Whether what takes too long for every change is tested too: all models, shapes and seeds."""


def require(name, is_there, reason):
    """Skips the test, or the tests of the file that is being read, where something is not there; fails where it has
    to be."""
    if is_there:
        return
    if name in REQUIRED:
        pytest.fail(f"{reason}; REMAT_TESTS_REQUIRE names {name}", pytrace=False)
    pytest.skip(reason, allow_module_level=True)
