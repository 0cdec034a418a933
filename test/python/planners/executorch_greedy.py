"""ExecuTorch's own planner, `executorch.exir.memory_planning.greedy`, called with buffers."""

from __future__ import annotations

import importlib.util

from .buffers import Buffer


def missing() -> str | None:
    return None if importlib.util.find_spec("executorch") else "the package `executorch` is not installed"


def place(buffers: list[Buffer]) -> list[int]:
    import torch
    from executorch.exir.memory_planning import greedy
    from executorch.exir.tensor import TensorSpec

    specs = []
    for buffer in buffers:
        spec = TensorSpec(dtype=torch.uint8, shape=torch.Size([buffer.size]))
        spec.lifetime, spec.mem_id = [buffer.begin, buffer.end - 1], 1
        specs.append(spec)
    result = greedy(16, specs, torch.fx.GraphModule({}, torch.fx.Graph()), None)
    return [result.spec_dict[spec].mem_offset for spec in specs]
