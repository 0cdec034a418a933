"""Steps of models in PyTorch's wrappers for several processes keep their promise and their bits in each of them."""

import pytest
import torch
import wrapped

pytestmark = pytest.mark.skipif(not torch.distributed.is_available(), reason="PyTorch has no processes here")


@pytest.fixture(scope="module")
def found():
    """What two processes took in each case."""
    return wrapped.measure({"ddp": "60%", "ddp accumulated": "60%"})


@pytest.mark.parametrize("case", ["ddp", "ddp accumulated"])
def test_no_process_takes_more_than_it_promised(found, case):
    for one in found[case]:
        assert one["same"] and len(one["reports"]) > 1
        for report in one["reports"]:
            assert report["fallback"] is None and report["gradients"] == "same bits"
            promised = report["promised_bytes"] - report["external_bytes"]
            assert one["peak"] <= promised < 0.8 * (report["baseline_bytes"] - report["external_bytes"])
        assert one["peak"] < 0.8 * one["eager"]


def test_buckets_of_gradients_are_part_of_what_stays(found):
    for one in found["ddp"]:
        inputs = 1024 * 256 * 4
        assert all(report["external_bytes"] == 2 * one["parameters"] + inputs for report in one["reports"])
