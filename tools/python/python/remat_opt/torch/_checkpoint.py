"""A module whose forward and backward follow a plan, without a compiler."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Collection, Sequence
from typing import Any, Literal, TypeVar

import torch
from torch.utils import _pytree as pytree

from ._code import boxed
from ._budget import Memory, parse
from ._effects import names_of
from ._partition import Partitioner, Settings
from ._plans import Search
from ._report import Report

Module = TypeVar("Module", bound=torch.nn.Module)


def checkpoint(
    model: Module,
    inputs: Sequence[Any],
    memory: Memory,
    *,
    time_limit: float = 10.0,
    step_limit: int | None = None,
    threads: int | None = None,
    order: Literal["free", "fixed"] = "free",
    solver: str = "search",
    seed: int = 0,
    recomputable: Collection[str] = (),
) -> Module:
    """A module like `model` whose forward saves less: what the backward needs besides is computed again.

        planned = remat_opt.torch.checkpoint(model, (images,), "60%")
        loss = criterion(planned(images), labels)
        loss.backward()

    It has the parameters, buffers and submodules of `model` themselves, and the same names in `state_dict`. Results and
    gradients have the same bits. The plan is for the shapes and types of `inputs`; other ones, and modes other than
    that of the model now, run `model` as it is, with a warning the first time. Nothing is planned without gradients.

    Args:
        model: Its outputs may be any that PyTorch traces. Its own hooks run around the plan, those of its parts are
            traced into it.
        inputs: As those to come; nothing runs with them. What is no tensor becomes part of the plan.
        memory: Of forward and backward of this model together, as of `backend`.
        time_limit: Seconds to search.
        step_limit: Most steps of the search for each plan; with one thread and the same seed, every search of the
            same graph gives the same plan, unless `time_limit` ends it before.
        threads: Threads to search with.
        order: Whether first runs of ops may change their order.
        solver: A solver of `docs/solvers`.
        seed: Of the search.
        recomputable: Ops of other packages that may run again, by name (`"my::mask"`) or by package (`"my"`). Others run
            once: nothing says whether they draw random numbers or change something.

    Raises:
        UnsupportedGraph: A part of the model cannot be planned, when it is called first; `.op` names it.
        UsageError: `memory` makes no sense.
    """
    search = Search(
        time_limit=time_limit, step_limit=step_limit, threads=threads, order=order, solver=solver, seed=seed
    )
    settings = Settings(parse(memory), search, strict=True, recomputable=names_of(recomputable))
    partitioner = Partitioner(settings, "eager")
    planned = copy.copy(model)
    # Not a deep copy: what is assigned to a parameter or a part of one is seen by the other.
    planned.__dict__["forward"] = _Planned(planned, inputs, partitioner)
    return planned


def checkpoint_report(planned: torch.nn.Module) -> Report | None:
    """What the plan of a module of `checkpoint` promises; `None` before its first call."""
    forward = planned.__dict__.get("forward")
    return forward.partitioner.last if isinstance(forward, _Planned) else None


class _Planned:
    """The forward of a planned module."""

    def __init__(self, planned: torch.nn.Module, inputs: Sequence[Any], partitioner: Partitioner) -> None:
        """
        Args:
            planned: The module that gets this forward; it has its own one still.
            inputs: What is planned for.
            partitioner: Plans.
        """
        self.planned = planned
        self.model = _without_hooks(planned)
        self.partitioner = partitioner
        self.key = _key(self.model, tuple(inputs), {})
        self._run: Callable[..., Any] | None = None
        self._has_warned = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.model.training = self.planned.training
        if not torch.is_grad_enabled():
            return self.model(*args, **kwargs)
        if (difference := self._difference(args, kwargs)) is not None:
            if not self._has_warned:
                self._has_warned = True
                warnings.warn(f"{difference}: the model runs as it is, not as planned", stacklevel=4)
            return self.model(*args, **kwargs)
        if self._run is None:
            self._run = self._compiled(args)
        tensors = [one for one in pytree.tree_leaves(args) if isinstance(one, torch.Tensor)]
        return self._run(dict(self.model.named_parameters()), dict(self.model.named_buffers()), tensors)

    def _difference(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
        """What a call has that was not planned for."""
        leaves = (*self.model.parameters(), *pytree.tree_leaves(args))
        if not any(one.requires_grad for one in leaves if _is_tensor(one)):
            return "nothing requires a gradient"
        names = ("the inputs", "the mode", "what requires gradients", "autocast")
        mine = _key(self.model, args, kwargs)
        different = [name for name, one, other in zip(names, mine, self.key, strict=True) if one != other]
        return f"{different[0]} {'are' if different[0] == 'the inputs' else 'is'} another one" if different else None

    def _compiled(self, args: tuple[Any, ...]) -> Callable[..., Any]:
        from torch._functorch.aot_autograd import aot_function

        leaves, spec = pytree.tree_flatten(args)
        places = [index for index, one in enumerate(leaves) if isinstance(one, torch.Tensor)]
        constants = [None if isinstance(one, torch.Tensor) else one for one in leaves]
        model = self.model

        def forward(
            parameters: dict[str, torch.Tensor], buffers: dict[str, torch.Tensor], tensors: list[torch.Tensor]
        ) -> Any:
            values = list(constants)
            for index, one in zip(places, tensors, strict=True):
                values[index] = one
            return torch.func.functional_call(model, parameters | buffers, pytree.tree_unflatten(values, spec))

        run: Callable[..., Any] = aot_function(
            forward,
            fw_compiler=boxed,
            bw_compiler=boxed,
            partition_fn=self.partitioner,
            num_params_buffers=len(dict(model.named_parameters())) + len(dict(model.named_buffers())),
        )
        return run


def _without_hooks(module: torch.nn.Module) -> torch.nn.Module:
    """The same module, without the hooks that run when it is called: the planned module runs them."""
    bare = copy.copy(module)
    for name, value in vars(module).items():
        if "hooks" in name and isinstance(value, dict):
            setattr(bare, name, type(value)())
    return bare


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def _key(model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """What a plan is made for."""
    leaves, spec = pytree.tree_flatten((args, kwargs))
    values = tuple(
        (one.shape, one.stride(), one.dtype, one.device, one.requires_grad) if _is_tensor(one) else repr(one)
        for one in leaves
    )
    modes = tuple(one.training for one in model.modules())
    frozen = tuple(one.requires_grad for one in model.parameters())
    devices = sorted({one.device.type for one in model.parameters()})
    casts = tuple((one, torch.is_autocast_enabled(one), torch.get_autocast_dtype(one)) for one in devices)
    return (values, str(spec)), modes, frozen, casts
