"""Offsets for ExecuTorch: the memory of an exported program in the lowest block that is found, with a proof where there
is one.

    from executorch.exir import ExecutorchBackendConfig
    from executorch.exir.memory_planning import MemoryPlanningAlgorithmSuite
    from executorch.exir.passes import MemoryPlanningPass
    from remat_opt.executorch import memory_planner

    planner = memory_planner()
    suite = MemoryPlanningAlgorithmSuite([planner])
    program = edge.to_executorch(ExecutorchBackendConfig(memory_planning_pass=MemoryPlanningPass(suite)))
    planner.placements[-1].height        # bytes of the block, .load: no block is lower

ExecuTorch decides which tensors are planned, how long each lives and in which memory (`mem_id`); the order of the ops
stays. The module needs the package `executorch` when a program is planned, not before.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ._command import Seconds
from ._placement import Placement, place
from .errors import ModelError

if TYPE_CHECKING:
    from executorch.exir.memory_planning import MemoryAlgoResult
    from executorch.exir.tensor import TensorSpec

__all__ = ["MemoryPlanner", "memory_planner"]


class MemoryPlanner:
    """An algorithm for ExecuTorch's `MemoryPlanningAlgorithmSuite`, which takes several and keeps the best result:
    `[greedy, memory_planner()]` works, too."""

    placements: list[Placement]
    """What was placed: one block for each memory of each graph, in the order in which they were planned."""

    def __init__(self, time_limit: Seconds = 10.0, step_limit: int | None = None, seed: int = 0) -> None:
        self.__name__ = "remat_opt"
        self.placements = []
        self._options: dict[str, Any] = {"time_limit": time_limit, "step_limit": step_limit, "seed": seed}

    def __call__(
        self,
        alignment: int,
        specs: Iterable[TensorSpec],
        graph_module: Any,
        graph_signature: Any,
        extra_padding: int = 0,
    ) -> MemoryAlgoResult:
        """Gives every spec its memory and its offset there.

        Args:
            alignment: Bytes that every offset is a multiple of; sizes are rounded up to it.
            specs: With lifetimes, first and last step. Those with a `storage_base` lie inside it.
            graph_module: `input_mem_buffer_sizes`: bytes at the beginning of each memory that graphs inside this one
                take.
            graph_signature: Not used.
            extra_padding: Bytes to add at the end of each memory.

        Raises:
            ModelError: A spec has no lifetime, or lies inside another one that does not hold it.
            LimitError: A limit was reached before a placement.
        """
        from executorch.exir.memory_planning import MemoryAlgoResult, SpecAllocResult

        specs = list(specs)
        for spec in specs:
            spec.realign(alignment)
        own = defaultdict(list)
        for spec in specs:
            if _base(spec) is None:
                own[spec.mem_id or 1].append(spec)
        reserved = list(getattr(graph_module, "input_mem_buffer_sizes", None) or ())
        memories = max([*own, len(reserved) - 1, 1])
        sizes = [0] * (memories + 1)
        found: dict[TensorSpec, SpecAllocResult] = {}
        for memory in range(1, memories + 1):
            start = _aligned(reserved[memory] if memory < len(reserved) else 0, alignment)
            height = 0
            if own[memory]:
                placement = place([_buffer(spec, alignment) for spec in own[memory]], **self._options)
                self.placements.append(placement)
                height = placement.height
                for spec, offset in zip(own[memory], placement.offsets, strict=True):
                    # One object for each memory: specs that overlap in storage have to have the same.
                    found[spec] = SpecAllocResult(mem_id=memory, mem_obj_id=0, mem_offset=start + offset)
            sizes[memory] = start + height + extra_padding if start + height else 0
        for spec in specs:
            if spec not in found:
                memory, offset = _inside(spec, found, alignment)
                found[spec] = SpecAllocResult(mem_id=memory, mem_obj_id=0, mem_offset=offset)
        return MemoryAlgoResult({spec: found[spec] for spec in specs}, sizes)


def memory_planner(*, time_limit: Seconds = 10.0, step_limit: int | None = None, seed: int = 0) -> MemoryPlanner:
    """An algorithm that plans the memory of ExecuTorch programs.

    Args:
        time_limit: Seconds to search for each memory of each graph; one pass over the tensors is always made.
        step_limit: How often a tensor may be tried at an offset; with the same seed, every call gives the same
            offsets.
        seed: Of the random choices.
    """
    return MemoryPlanner(time_limit, step_limit, seed)


def _base(spec: TensorSpec) -> TensorSpec | None:
    """The spec whose storage this one lies in. Older versions of ExecuTorch know no such thing."""
    base: TensorSpec | None = getattr(spec, "storage_base", None)
    return base


def _buffer(spec: TensorSpec, alignment: int) -> dict[str, int]:
    first, last = spec.lifetime
    if first is None or last is None:
        raise ModelError(f"{spec} has no lifetime: its memory cannot be planned")
    return {"lower": first, "upper": last + 1, "size": spec.allocated_memory, "alignment": alignment}


def _inside(spec: TensorSpec, found: dict[TensorSpec, Any], alignment: int) -> tuple[int, int]:
    """Memory and offset of a spec that lies in the storage of another one."""
    offset, at, seen = 0, spec, {id(spec)}
    while (base := _base(at)) is not None:
        within = at.storage_base_offset
        if within < 0 or within + at.allocated_memory > base.allocated_memory:
            raise ModelError(
                f"{at} takes {at.allocated_memory} bytes from byte {within} on: "
                f"more than the {base.allocated_memory} bytes of the storage that it lies in"
            )
        if id(base) in seen:
            raise ModelError(f"{spec} lies inside itself")
        seen.add(id(base))
        offset, at = offset + within, base
    if at not in found:
        raise ModelError(f"{spec} lies in the storage of {at}, whose memory is not planned")
    offset += found[at].mem_offset
    if offset % alignment:
        raise ModelError(f"{spec} has to lie at byte {offset}, which is not a multiple of {alignment}")
    return found[at].mem_id, offset


def _aligned(size: int, alignment: int) -> int:
    return -(-size // alignment) * alignment
