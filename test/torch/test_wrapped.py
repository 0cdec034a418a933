"""Steps of models in PyTorch's wrappers for several processes keep their promise and their bits in each of them."""

import pytest
import remat_opt.torch
import torch
import wrapped
from remat_opt.torch import _backend, _code

pytestmark = pytest.mark.skipif(not torch.distributed.is_available(), reason="PyTorch has no processes here")


@pytest.fixture(scope="module")
def found():
    """What two processes took in each case."""
    return wrapped.measure({"ddp": "60%", "ddp accumulated": "60%", "fsdp": "60%"})


@pytest.mark.parametrize("case", ["ddp", "ddp accumulated", "fsdp"])
def test_no_process_takes_more_than_it_promised(found, case):
    for one in found[case]:
        assert one["same"] and one["reports"]
        for report in one["reports"]:
            assert report["fallback"] is None and report["gradients"] == "same bits"
            promised = report["promised_bytes"] - report["external_bytes"]
            assert one["peak"] <= promised < 0.8 * (report["baseline_bytes"] - report["external_bytes"])
        assert one["peak"] < 0.8 * one["eager"]


def test_of_gathered_parameters_only_shards_stay(found):
    for one in found["fsdp"]:
        assert all(report["external_bytes"] == one["parameters"] + 1024 * 256 * 4 for report in one["reports"])


def test_behind_inductor_sharded_models_are_refused_and_told_what_to_do(monkeypatch):
    monkeypatch.setattr(_backend, "is_gathered", lambda: True)
    monkeypatch.setattr(_code.Inner, "compile", lambda self, *arguments: _code.op_by_op(*arguments))
    backend = remat_opt.torch.backend("60%", "inductor")
    torch.compile(torch.nn.Linear(4, 4), backend=backend)(torch.randn(2, 4)).sum().backward()
    (report,) = backend.reports
    assert report.promised_bytes is None and 'inner="aot_eager"' in report.fallback


def test_buckets_of_gradients_are_part_of_what_stays(found):
    for one in found["ddp"]:
        inputs = 1024 * 256 * 4
        assert all(report["external_bytes"] == 2 * one["parameters"] + inputs for report in one["reports"])
