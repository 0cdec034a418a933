"""The planners of ExecuTorch, on buffers of any origin."""

import types

from adapter import Adapter
from cases import ALIGNMENT


class ExecuTorch(Adapter):
    needs = ("executorch", "torch")
    asked = {("+ offsets", "buffers"): {name: {"algorithm": name} for name in ("greedy", "naive")}}

    def place(self, buffers, options):
        import torch
        from executorch.exir import memory_planning
        from executorch.exir.tensor import TensorSpec

        specs = []
        for lower, upper, size in buffers:
            spec = TensorSpec(torch.uint8, torch.Size([size]))
            # Its last step counts.
            spec.lifetime, spec.mem_id = [lower, upper - 1], None
            specs.append(spec)
        module = types.SimpleNamespace(input_mem_buffer_sizes=None, meta={})
        found = getattr(memory_planning, options["algorithm"])(ALIGNMENT, specs, module, None, 0)
        return [found.spec_dict[spec].mem_offset for spec in specs]
