"""What CI has to have: where it is not there, CI fails."""

import models
import need
import pytest


@pytest.mark.parametrize("name", ["browser", "mlir", "torch"])
def test_what_is_required_fails_and_what_is_not_is_skipped(monkeypatch, name):
    need.require(name, True, "it is there")
    monkeypatch.setattr(need, "REQUIRED", frozenset())
    with pytest.raises(pytest.skip.Exception, match="no such thing"):
        need.require(name, False, "no such thing")
    monkeypatch.setattr(need, "REQUIRED", frozenset({name}))
    with pytest.raises(pytest.fail.Exception, match=f"no such thing; REMAT_TESTS_REQUIRE names {name}"):
        need.require(name, False, "no such thing")


def test_what_ci_installs_is_required_there():
    text = (models.ROOT / ".ci" / "run").read_text()
    assert "third_party/fetch.sh torch" in text
    required = next(line.split("=", 1)[1] for line in text.splitlines() if line.startswith("export REMAT_TESTS_REQUIRE="))
    assert {"mlir", "browser", "torch", "wheel", "onnxruntime", "ortools", "python"} <= set(required.split(","))
