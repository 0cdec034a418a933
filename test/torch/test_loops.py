"""Training loops of several kinds keep their bits and what is promised of them."""

import loops
import pytest
from need import NIGHTLY

USUAL = ["GAN", "tagger, nn.LSTM", "adversarial examples", "GPT, tied weights, four micro-batches", "policy gradient", "quantized autoencoder, codes that follow"]
"""Several models; what runs before the first graph; a backward within the step; gradients that add up; random numbers between
forward and backward; a buffer that is overwritten."""


@pytest.fixture(scope="module")
def measured():
    """What loops took."""
    return loops.measure(list(loops.LOOPS) if NIGHTLY else USUAL)


@pytest.mark.parametrize("name", loops.LOOPS if NIGHTLY else USUAL)
def test_loops_keep_their_bits_and_their_promise(measured, name):
    found = measured[name]
    assert found["same"]
    assert found["reports"]
    assert all(one["fallback"] is None and one["gradients"] == "same bits" for one in found["reports"])
    assert found["peak"] <= loops.promised(found)
    assert loops.promised(found) < max(one["baseline_bytes"] - one["external_bytes"] for one in found["reports"])
