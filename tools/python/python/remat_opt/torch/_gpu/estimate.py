"""Whether a training step fits a CUDA device, from a machine without one."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, TypedDict

import torch
from torch.nn.utils.stateless import _reparametrize_module
from torch.utils._pytree import tree_map

from ... import _native
from ...errors import ModelError, UsageError
from .devices import Gpu, device as named_device
from .dry_run import KINDS, DryRun, Recorder
from .kernels import on_cuda
from .simulated import SimulatedDevice

if TYPE_CHECKING:
    from typing_extensions import Unpack

Precision = Literal["bf16", "fp16"]
Optimizer = torch.optim.Optimizer | Callable[[list[torch.nn.Parameter]], torch.optim.Optimizer]
PRECISIONS = {"bf16": torch.bfloat16, "fp16": torch.float16}
ENDLESS = 1 << 50
"""More memory than any device has."""
_STEPS = 2
"""The state of the optimizer is there from the second one on."""


class _Options(TypedDict, total=False):
    """What `estimate` is told besides."""

    precision: Precision | None
    loss: Callable[[Any], torch.Tensor] | None
    settings: str


@dataclass(frozen=True)
class Estimate:
    """What a training step takes on a device, in bytes. `str()` of it is a table."""

    device: str
    device_bytes: int
    """The memory of the device."""
    context_bytes: int
    """What is taken before the first tensor."""
    reserved_bytes: int
    """Most that PyTorch's allocator reserves: what `nvidia-smi` shows is this and the context."""
    allocated_bytes: int
    """Most that tensors and workspace have."""
    kinds: Mapping[str, int]
    """What they are at that moment: `parameters`, `inputs`, `gradients`, `optimizer`, `activations`, `backward`, `workspace`."""
    op: str
    """The op at that moment."""
    line: str
    """The line of the model that it belongs to, `file:line`; empty where there is none."""
    phase: str
    """Which part of the step it is in: `forward`, `backward` or `optimizer`."""
    fits: bool
    """Whether the allocator finds room for all."""
    failure: str | None
    """Why not."""
    basis: str
    """Where the figures of the device are from."""
    run: DryRun = field(default_factory=DryRun, compare=False, repr=False)
    """Every allocation of the step, and of those before it."""

    @property
    def total_bytes(self) -> int:
        """What the process takes of the device."""
        return self.reserved_bytes + self.context_bytes

    def to_json(self) -> str:
        """As an object of JSON."""
        return json.dumps(self.as_object(), indent=2)

    def as_object(self) -> dict[str, Any]:
        """The figures by name, as `to_json` has them."""
        figures = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "run"}
        return figures | {"total_bytes": self.total_bytes}

    def to_html(self, title: str = "Training step") -> str:
        """A page for a browser, one file: memory over the step by kind, the peak, and the largest tensors then."""
        from .page import page

        return page(title, self)

    def __str__(self) -> str:
        verdict = "fits" if self.fits else "does not fit"
        rows = [(kind, self.kinds[kind]) for kind in KINDS if kind in self.kinds]
        rows += [("reserved besides", self.reserved_bytes - self.allocated_bytes), ("context", self.context_bytes)]
        where = f", {self.line}" if self.line else ""
        return "\n".join(
            [
                f"{verdict}: {size(self.total_bytes)} of {size(self.device_bytes)} ({self.device}, {self.basis})",
                f"peak at `{self.op}` ({self.phase}{where})",
                *(f"{name:18}{size(count):>12}" for name, count in rows),
                *([self.failure] if self.failure else []),
            ]
        )


def estimate(
    model: torch.nn.Module,
    inputs: Sequence[Any] | torch.Tensor,
    device: str,
    optimizer: Optimizer | None = None,
    *,
    precision: Precision | None = None,
    loss: Callable[[Any], torch.Tensor] | None = None,
    settings: str = "",
) -> Estimate:
    """What eager training takes on a CUDA device: parameters, gradients, optimizer, activations, workspace, and what
    PyTorch's caching allocator reserves for them. Nothing is computed, and no such device is needed.

    Two steps run without numbers, as on CUDA; their allocations go through a simulation of the allocator. Held against
    three steps of eight networks on an H200, in single precision and `bf16`: `docs/guides/pytorch.md` has the differences.

    Args:
        model: On any device, `meta` too. It is not changed.
        inputs: What it is called with; numbers do not matter.
        device: `"h100"`, `"cuda 24GiB"`, `"cuda:0"` for one that is there, `"h100 40GB"` for a part of one.
        optimizer: One of the model's parameters, or what makes one of them. Without, gradients stay.
        precision: Of `torch.autocast`.
        loss: Of what the model returns. Without, that is the loss, or the mean of its squares where it is a tensor
            of more than one element.
        settings: As in `PYTORCH_CUDA_ALLOC_CONF`.

    Raises:
        UsageError: The device or a setting is not known.
        ModelError: The step does not run without numbers; `.op` names the op.
    """
    gpu = named_device(device)
    if precision is not None and precision not in PRECISIONS:
        raise UsageError(f"`{precision}` is no precision of autocast: give `bf16` or `fp16`")
    given = [inputs] if isinstance(inputs, torch.Tensor) else list(inputs)
    run = _dry_run(model, given, gpu, optimizer, precision, loss)
    return estimate_of(run, gpu, settings)


def largest_batch(
    model: torch.nn.Module,
    inputs: Sequence[Any] | torch.Tensor,
    device: str,
    optimizer: Optimizer | None = None,
    *,
    most: int = 1 << 16,
    seen: Callable[[int, Estimate], None] | None = None,
    **options: Unpack[_Options],
) -> tuple[int, Estimate | None]:
    """The largest batch that fits, with its estimate; 0 and nothing where not even one member does.

    Args:
        model: As of `estimate`, and so are `device` and `optimizer`.
        inputs: Tensors have the batch as their first dimension; those without dimensions stay as they are.
        device: `"h100"`, `"cuda 24GiB"` and others.
        optimizer: One of the model's parameters, or what makes one of them.
        most: The largest batch that is tried.
        seen: Told of each batch that is tried.
        options: `precision`, `loss` and `settings` of `estimate`.

    Raises:
        UsageError: As `estimate`.
        ModelError: As `estimate`.
    """
    given = [inputs] if isinstance(inputs, torch.Tensor) else list(inputs)

    def tried(batch: int) -> Estimate:
        def resized(value: Any) -> Any:
            if not isinstance(value, torch.Tensor) or value.dim() == 0:
                return value
            return torch.empty((batch, *value.shape[1:]), dtype=value.dtype, device="meta")

        found = estimate(model, tree_map(resized, given), device, optimizer, **options)
        if seen is not None:
            seen(batch, found)
        return found

    best: tuple[int, Estimate | None] = (0, None)
    low, high = 0, 1
    while high <= most and (found := tried(high)).fits:
        best, low, high = (high, found), high, 2 * high
    high = min(high, most + 1)
    while high - low > 1:
        middle = (low + high) // 2
        found = tried(middle)
        if found.fits:
            best, low = (middle, found), middle
        else:
            high = middle
    return best


def _dry_run(
    model: torch.nn.Module,
    inputs: list[Any],
    gpu: Gpu,
    optimizer: Any,
    precision: Precision | None,
    loss: Callable[[Any], torch.Tensor] | None,
    steps: int = _STEPS,
) -> DryRun:
    recorder = Recorder(gpu)
    try:
        with with_twins(model, recorder) as twins:
            parameters = list(twins.values())
            updates = twin_of(optimizer, twins)
            given = [without_numbers(one) for one in inputs]
            for one in given:
                if isinstance(one, torch.Tensor):
                    recorder.track(one, "inputs")
            recorder.mark("model")
            for step in range(steps):
                _step(model, given, recorder, updates, precision, loss, step, parameters)
    except (NotImplementedError, RuntimeError) as error:
        last = next((one.op for one in reversed(recorder.run.allocations.values()) if one.op and one.kind != "parameters"), None)
        raise ModelError(f"the step does not run without numbers, after `{last}`: {error}", op=last) from error
    return recorder.run


def _step(
    model: torch.nn.Module,
    inputs: list[Any],
    recorder: Recorder,
    optimizer: torch.optim.Optimizer | None,
    precision: Precision | None,
    loss: Callable[[Any], torch.Tensor] | None,
    step: int,
    parameters: list[torch.nn.Parameter],
) -> None:
    recorder.phase = "forward"
    with on_cuda(recorder, None if precision is None else PRECISIONS[precision]):
        result = model(*inputs)
        value = as_loss(result, loss)
        del result
    recorder.mark(f"forward {step}")
    recorder.phase = "backward"
    with on_cuda(recorder, None if precision is None else PRECISIONS[precision]):
        value.backward()
    recorder.rename((one.grad for one in parameters if one.grad is not None), "gradients")
    recorder.mark(f"backward {step}")
    recorder.phase = "optimizer"
    if optimizer is not None:
        # What an optimizer asks of the device of its parameters, it is told of CUDA.
        with recorder, SimulatedDevice():
            optimizer.step()
        recorder.mark(f"optimizer {step}")
        optimizer.zero_grad(set_to_none=True)
    del value
    recorder.mark(f"step {step}")


def as_loss(result: Any, loss: Callable[[Any], torch.Tensor] | None) -> torch.Tensor:
    """The loss of what a model returns.

    Raises:
        ModelError: That is no tensor.
    """
    value = result if loss is None else loss(result)
    if not isinstance(value, torch.Tensor):
        raise ModelError(f"the model returns `{type(value).__name__}`: give `loss`, which makes a number of it")
    return value.float().square().mean() if value.dim() > 0 else value


@contextmanager
def with_twins(
    model: torch.nn.Module, recorder: Recorder | None = None, make: Callable[[Any], Any] | None = None
) -> Iterator[dict[int, torch.nn.Parameter]]:
    """Parameters without numbers, by the `id` of those for which they stand; inside, the model runs with them.

    Args:
        model: It has its own again afterwards.
        recorder: Told of them.
        make: Makes the tensors; without, `without_numbers` does.
    """
    twins: dict[int, torch.nn.Parameter] = {}
    state: dict[str, torch.Tensor] = {}
    made = make or without_numbers
    for name, one in model.named_parameters(remove_duplicate=False):
        if id(one) not in twins:
            twins[id(one)] = torch.nn.Parameter(made(one).detach(), requires_grad=one.requires_grad)
            if recorder is not None:
                recorder.track(twins[id(one)], "parameters", name)
        state[name] = twins[id(one)]
    for name, one in model.named_buffers(remove_duplicate=False):
        state[name] = made(one)
        if recorder is not None:
            recorder.track(state[name], "parameters", name)
    with _reparametrize_module(model, state, tie_weights=False):
        yield twins


def without_numbers(value: Any, device: str = "meta") -> Any:
    """A tensor of the same form on `meta`; other values as they are."""
    if not isinstance(value, torch.Tensor):
        return value
    found = torch.empty_strided(value.size(), value.stride(), dtype=value.dtype, device=device)
    return found.requires_grad_(value.requires_grad)


def twin_of(given: Any, twins: Mapping[int, torch.nn.Parameter]) -> torch.optim.Optimizer | None:
    """The same optimizer of the parameters without numbers, with the loops that it takes on CUDA."""
    if given is None:
        return None
    if isinstance(given, torch.optim.Optimizer):
        groups = [_group(group, twins) for group in given.param_groups]
        known = inspect.signature(type(given)).parameters
        made = type(given)(groups, **{name: value for name, value in given.defaults.items() if name in known})
    else:
        made = given(list(twins.values()))
        if not isinstance(made, torch.optim.Optimizer):
            raise UsageError(f"`optimizer` gave `{type(made).__name__}`, no optimizer")
    for group in made.param_groups:
        if "foreach" in group and group["foreach"] is None and not group.get("fused"):
            group["foreach"] = True
    return made


def _group(group: Mapping[str, Any], twins: Mapping[int, torch.nn.Parameter]) -> dict[str, Any]:
    own: Iterable[torch.nn.Parameter] = group["params"]
    missing = [one for one in own if id(one) not in twins]
    if missing:
        raise UsageError("the optimizer has parameters that the model has not")
    return {**group, "params": [twins[id(one)] for one in own]}


def estimate_of(run: DryRun, gpu: Gpu, settings: str) -> Estimate:
    """What a program takes on a device.

    Raises:
        UsageError: A setting is not known.
    """
    requests = run.requests()
    try:
        figures, (peak, _), failed = _native.simulate_allocations(settings, gpu.total, gpu.free, requests)
        if failed is not None:
            # What it would take is worth knowing all the same.
            figures, (peak, _), _ = _native.simulate_allocations(settings, ENDLESS, ENDLESS, requests)
    except ValueError as error:
        raise UsageError(str(error)) from error
    highest = run.allocations[abs(run.events[peak])] if run.events else None
    ended = sum(count <= peak for _, count in run.marks)
    phase = run.marks[ended][0].partition(" ")[0] if ended < len(run.marks) else ""
    return Estimate(
        device=gpu.name,
        device_bytes=gpu.total,
        context_bytes=gpu.context,
        reserved_bytes=figures["reserved_peak"],
        allocated_bytes=figures["allocated_peak"],
        kinds=run.live_after(peak),
        op=highest.op if highest else "",
        line=highest.line if highest else "",
        phase=phase,
        fits=failed is None,
        failure=None if failed is None else failed[1],
        basis=gpu.source,
        run=run,
    )


def size(count: float) -> str:
    """Bytes in the unit that fits."""
    for unit in ("B", "KiB", "MiB"):
        if abs(count) < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.2f} GiB"
