"""A training script, run without its device up to its third step: what its steps allocate there."""

from __future__ import annotations

import contextlib
import os
import runpy
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils._pytree import tree_leaves

from ...errors import ModelError
from .captured import Tape
from .devices import Gpu
from .dry_run import DryRun, Recorder
from .kernels import again_within
from .simulated import SimulatedDevice, simulated

_STEPS = 2
"""Steps of an optimizer before the one at which a script is stopped: its state is there from the second one on."""
_SHOWN = 5
"""Lines that are named."""


class _Stop(BaseException):
    """Enough was seen. No script catches it by accident."""


@dataclass
class Found:
    """What a script did."""

    run: DryRun
    steps: int
    """Steps of the optimizer that were seen, the last one without its update."""
    tape: Tape
    """Its model, what it is called with, and what becomes of the result."""
    optimizers: list[torch.optim.Optimizer]
    notes: list[str] = field(default_factory=list)
    """What may make a difference to what a GPU would do."""


def watch(path: str, arguments: Sequence[str], gpu: Gpu) -> Found:
    """Runs a script as `python path arguments` would on a machine with the device, until its third step begins. What it
    prints goes to stderr.

    Args:
        path: The script.
        arguments: Its own.
        gpu: The device that it finds.

    Raises:
        ModelError: It ends before its first step, or an op of it does not run without numbers.
    """
    watcher = _Watcher(gpu)
    failed = None
    try:
        with watcher.watching(), _as_program(path, arguments):
            runpy.run_path(path, run_name="__main__")
    except _Stop:
        pass
    except SystemExit as ended:
        failed = f"it ends with exit status {ended.code}" if ended.code else None
    except Exception as error:
        failed = _failure(error)
    return watcher.found(path, failed)


def load_entry(entry: str, gpu: Gpu) -> tuple[Any, ...]:
    """What a function of a file gives: model, inputs, and if there are some optimizer and loss.

    Args:
        entry: `file.py:function`.
        gpu: The device that it finds.

    Raises:
        ModelError: There is no such function, it fails, or it gives something else.
    """
    path, _, name = entry.rpartition(":")
    try:
        with simulated(gpu, SimulatedDevice()), _as_program(path, ()):
            function = runpy.run_path(path, run_name="__entry__").get(name)
            if not callable(function):
                raise ModelError(f"`{path}` has no function `{name}`: `--entry` is FILE:FUNCTION")
            given = function()
    except ModelError:
        raise
    except Exception as error:
        raise ModelError(f"`{entry}` fails: {_failure(error)}") from error
    wanted = "(model, inputs), and if there are some the optimizer and a function that gives the loss of the model's result"
    if not isinstance(given, (tuple, list)) or not 2 <= len(given) <= 4 or not isinstance(given[0], torch.nn.Module):
        raise ModelError(f"`{entry}` gives `{type(given).__name__}`: it has to return {wanted}")
    return tuple(given)


class _Watcher:
    """Follows a script through its phases."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        self._recorder = Recorder(gpu)
        self._device = SimulatedDevice()
        self._tape = Tape()
        self._depth = 0
        self._models: dict[int, torch.nn.Module] = {}
        self._optimizers: dict[int, torch.optim.Optimizer] = {}
        self._steps: dict[int, int] = {}
        self._backwards = 0
        self._seen: tuple[DryRun, int] | None = None

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Inside, everything is seen."""
        call = torch.nn.Module.__call__
        watcher = self

        def called(module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
            return watcher._call(call, module, args, kwargs)

        before = register_optimizer_step_pre_hook(lambda optimizer, *_: self._before_update(optimizer))
        after = register_optimizer_step_post_hook(lambda optimizer, *_: self._after_update(optimizer))
        self._device.observe = self._observe
        try:
            with (
                mock.patch.object(torch.nn.Module, "__call__", called),
                again_within(self._device),
                self._backwards_seen(),
                self._recorder,
                simulated(self._gpu, self._device),
            ):
                yield
        finally:
            self._device.observe = None
            before.remove()
            after.remove()

    @contextlib.contextmanager
    def _backwards_seen(self) -> Iterator[None]:
        engine = torch.autograd._engine_run_backward

        def run(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            return self._backward(engine, tensors, args, kwargs)

        with mock.patch.object(torch.autograd, "_engine_run_backward", run):
            yield

    def found(self, path: str, failed: str | None) -> Found:
        """What was seen.

        Raises:
            ModelError: That was no step.
        """
        run, steps = self._seen or (self._recorder.run, max(self._steps.values(), default=0))
        if failed is not None and steps < _STEPS and self._models:
            op = self._recorder.running
            where = f", at `{op}`" if op else ""
            raise ModelError(f"`{path}` fails in its training step {steps + 1}{where}: {failed}", op=op)
        if steps == 0 and self._backwards == 0:
            raise ModelError(self._nothing(path, failed))
        notes = []
        if steps == 0:
            notes.append("no optimizer was seen: gradients stay")
        elif steps < _STEPS:
            notes.append("the script makes one step: what its optimizer keeps was made in it")
        if lines := list(self._device.asked)[:_SHOWN]:
            notes.append(f"0 was taken for numbers that are not computed, asked for at {', '.join(lines)}")
        return Found(run, steps, self._tape, list(self._optimizers.values()), notes)

    def _nothing(self, path: str, failed: str | None) -> str:
        if failed is not None:
            return f"`{path}` ends before its first training step: {failed}"
        if not self._models:
            return f"`{path}` calls no model with parameters: give a script that trains, or `--entry FILE:FUNCTION`"
        return f"`{path}` makes no training step: neither `backward` nor `step` of an optimizer of PyTorch is called"

    def _call(self, call: Callable[..., Any], module: torch.nn.Module, args: Any, kwargs: Any) -> Any:
        if self._seen is not None:
            raise _Stop
        is_model = self._depth == 0 and self._recorder.phase != "backward" and next(module.parameters(), None) is not None
        if not is_model:
            # Within a model, again for a checkpoint, or a function that keeps nothing: a loss.
            return call(module, *args, **kwargs)
        self._meets(module, args, kwargs)
        self._depth += 1
        try:
            result = call(module, *args, **kwargs)
        finally:
            self._depth -= 1
        if torch.is_grad_enabled() and self._backwards == 0:
            self._tape.begin(module, args, kwargs, result, self._device.precision)
        return result

    def _meets(self, module: torch.nn.Module, args: Any, kwargs: Any) -> None:
        """A model is called: what is there is known by name, and a forward begins."""
        recorder = self._recorder
        own = {*module.parameters(), *module.buffers()}
        if id(module) not in self._models:
            if not self._models:
                recorder.rename_all("parameters", "inputs", own)
            self._models[id(module)] = module
            recorder.name_all(dict((*module.named_buffers(), *module.named_parameters())), "parameters")
        given = (one for one in tree_leaves((args, kwargs)) if isinstance(one, torch.Tensor))
        recorder.rename((one for one in given if not one.requires_grad), "inputs")
        if recorder.phase != "forward":
            recorder.mark(f"{recorder.phase} {self._backwards}")
            recorder.phase = "forward"

    def _backward(self, engine: Callable[..., Any], tensors: Any, args: Any, kwargs: Any) -> Any:
        recorder = self._recorder
        if recorder.phase == "backward":
            return engine(tensors, *args, **kwargs)
        if self._seen is not None:
            raise _Stop
        if not torch.is_autocast_enabled("cuda"):
            self._device.forget_casts()
        recorder.mark(f"forward {self._backwards}")
        recorder.phase = "backward"
        self._tape.end(tensors)
        result = engine(tensors, *args, **kwargs)
        parameters = [one for model in self._models.values() for one in model.parameters()]
        recorder.rename((one.grad for one in parameters if one.grad is not None), "gradients")
        recorder.mark(f"backward {self._backwards}")
        recorder.phase = "inputs"
        self._backwards += 1
        if not self._optimizers and self._backwards > _STEPS:
            self._stop()
        return result

    def _before_update(self, optimizer: torch.optim.Optimizer) -> None:
        if self._seen is not None:
            raise _Stop
        self._optimizers[id(optimizer)] = optimizer
        if self._steps.get(id(optimizer), 0) >= _STEPS:
            self._stop()
        self._recorder.mark(f"{self._recorder.phase} {self._backwards}")
        self._recorder.phase = "optimizer"

    def _after_update(self, optimizer: torch.optim.Optimizer) -> None:
        self._steps[id(optimizer)] = self._steps.get(id(optimizer), 0) + 1
        self._recorder.mark(f"optimizer {self._backwards}")
        self._recorder.phase = "inputs"

    def _stop(self) -> None:
        """What is freed from here on is not the script's doing."""
        run = self._recorder.run
        self._seen = (DryRun(dict(run.allocations), list(run.events), list(run.marks)), max(self._steps.values(), default=0))
        raise _Stop

    def _observe(self, func: Any, args: Any, kwargs: Any, result: Any) -> None:
        if self._depth == 0:
            self._tape.add(func, args, kwargs, result)


def _failure(error: BaseException) -> str:
    """An error, and the last line of the script that it came through."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.endswith(".py")]
    outside = [frame for frame in frames if f"{os.sep}torch{os.sep}" not in frame.filename and frame.filename != runpy.__file__]
    where = f" ({outside[-1].filename}:{outside[-1].lineno})" if outside else ""
    return f"{type(error).__name__}: {error}{where}"


@contextlib.contextmanager
def _as_program(path: str, arguments: Sequence[str]) -> Iterator[None]:
    """As a program of its own, whose output is talk."""
    folder = os.path.dirname(os.path.abspath(path))
    with (
        mock.patch.object(sys, "argv", [path, *arguments]),
        mock.patch.object(sys, "path", [folder, *sys.path]),
        contextlib.redirect_stdout(sys.stderr),
    ):
        yield
