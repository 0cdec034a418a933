"""Estimates of training steps on a GPU, beside what they took there."""

import statistics

import models
import pytest
import recordings
import torch
from remat_opt import ModelError, UsageError
from remat_opt.torch import estimate, largest_batch

OPTIMIZERS = {"sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.01, momentum=0.9, foreach=False)}
SETTINGS = {"default": "", "expandable": "expandable_segments:True"}


@pytest.fixture(scope="module")
def errors():
    """By recording, how far the estimate is off: of what is allocated and of what is reserved, as shares."""

    def is_wanted(name):
        model, variant, setting = name.rsplit("-", 2)
        return setting in SETTINGS and (model != "loop" or variant == "plain")

    found = {}
    for name, recording in recordings.load(is_wanted).items():
        model, variant, setting = name.rsplit("-", 2)
        made, inputs = models.make(model)
        step = estimate(
            made,
            inputs,
            "h200",
            OPTIMIZERS.get(variant, torch.optim.AdamW),
            precision="bf16" if variant == "bf16" else None,
            settings=SETTINGS[setting],
        )
        last = recording["marks"][-2]
        assert last["at"].startswith("step")
        of = {"allocated_peak": step.allocated_bytes, "reserved_peak": step.reserved_bytes}
        found[name] = tuple(size / last[key] - 1 for key, size in of.items())
        assert step.fits
    return found


def test_estimates_are_near_what_a_gpu_took(errors):
    assert len(errors) == 44
    for name, (allocated, reserved) in errors.items():
        assert abs(allocated) <= 0.09, (name, allocated)
        # A page of a segment that grows is 20 MiB.
        assert abs(reserved) <= (0.1 if "expandable" in name else 0.09), (name, reserved)
    for place in range(2):
        assert statistics.median(abs(one[place]) for one in errors.values()) <= 0.005


def test_the_peak_has_its_op_its_line_and_what_is_there_then():
    model, inputs = models.make("vit-tiny")
    step = estimate(model, inputs, "cuda 24GB", torch.optim.AdamW)
    path, _, line = step.line.rpartition(":")
    assert path == models.__file__ and int(line) > 0
    assert step.phase in ("forward", "backward", "optimizer") and step.op.startswith("aten::")
    # Blocks are rounded up.
    parameters = sum(one.numel() * one.element_size() for one in model.parameters())
    assert step.kinds["parameters"] == parameters and step.kinds["optimizer"] >= 2 * parameters
    assert 0 <= step.allocated_bytes - sum(step.kinds.values()) <= 0.02 * step.allocated_bytes
    assert step.allocated_bytes <= step.reserved_bytes < step.total_bytes < step.device_bytes
    assert "fits: " in str(step) and step.line in str(step) and '"reserved_bytes"' in step.to_json()


def test_nothing_is_left_on_the_model_and_an_optimizer_may_be_there_already():
    model, inputs = models.make("resnet-tiny")
    given = torch.optim.AdamW(model.parameters(), lr=0.1)
    before = [(one.device, one.grad) for one in model.parameters()], [one.clone() for one in model.buffers()]
    found = estimate(model, inputs, "h100", given)
    assert found == estimate(model, inputs, "h100", torch.optim.AdamW)
    assert before[0] == [(one.device, one.grad) for one in model.parameters()]
    assert all(torch.equal(one, other) for one, other in zip(before[1], model.buffers(), strict=True))
    assert not given.state
    with torch.device("meta"):
        twin, _ = models.make("resnet-tiny")
    assert found == estimate(twin, inputs, "h100", torch.optim.AdamW)


def test_the_largest_batch_fits_and_the_next_one_does_not():
    model, inputs = models.make("gpt-tiny")
    device = "cuda 900MiB"
    batch, step = largest_batch(model, inputs, device, torch.optim.AdamW)
    assert batch > 1 and step.fits and step.total_bytes <= 900 << 20
    grown = [torch.zeros((batch + 1, *one.shape[1:]), dtype=one.dtype) for one in inputs]
    failed = estimate(model, grown, device, torch.optim.AdamW)
    assert not failed.fits and "out of memory" in failed.failure and "does not fit" in str(failed)
    assert largest_batch(model, inputs, "cuda 650MiB", torch.optim.AdamW) == (0, None)
    assert largest_batch(model, inputs, device, most=3)[0] == 3


def test_what_is_not_known_is_named():
    model, inputs = models.make("vit-tiny")
    for device, message in (
        ("mps", "allocator of `mps` is not simulated"),
        ("cuda:7", "there is no `cuda:7` here"),
        ("phone", "`phone` is no device"),
        ("cuda 60%", "is no memory of a device"),
    ):
        with pytest.raises(UsageError, match=message):
            estimate(model, inputs, device)
    with pytest.raises(UsageError, match="is not simulated"):
        estimate(model, inputs, "h100", settings="colour:blue")
    with pytest.raises(UsageError, match="no precision"):
        estimate(model, inputs, "h100", precision="int8")

    class Looks(torch.nn.Linear):
        def forward(self, x):
            y = super().forward(x)
            return y.sum() if y.mean() > 0 else y.mean()

    with pytest.raises(ModelError, match="does not run without numbers, after `aten::gt`"):
        estimate(Looks(4, 4), torch.ones(2, 4), "h100")
    with pytest.raises(ModelError, match="give `loss`"):
        estimate(torch.nn.LSTM(4, 4), torch.ones(2, 3, 4), "h100")


def test_blocks_of_fused_attention_and_dropout_are_those_of_the_gpu():
    """Attention keeps no scores, dropout a byte for each element, in half precision as well."""

    class Mixing(torch.nn.Module):
        def forward(self, q, mask):
            mixed = torch.nn.functional.scaled_dot_product_attention(q, q, q, attn_mask=mask)
            return torch.nn.functional.dropout(mixed, 0.5).sum()

    q, mask = torch.ones(2, 4, 1024, 32, requires_grad=True), torch.ones(1024, 1024, dtype=torch.bool)
    scores = 2 * 4 * 1024 * 1024 * 4
    for precision in (None, "bf16"):
        step = estimate(Mixing(), [torch.nn.Parameter(q), mask], "h100", precision=precision)
        assert step.kinds.get("activations", 0) < scores, precision
