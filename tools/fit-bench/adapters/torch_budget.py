"""`activation_memory_budget` of `torch.compile`: a share of what the forward pass saves for the backward pass."""

from adapter import Adapter


class TorchBudget(Adapter):
    needs = ("torch",)
    asked = {("order + recompute", "torch"): {f"budget {share}": {"share": share} for share in (0.5, 0.2)}}

    def step(self, model, options):
        import torch
        import torch._functorch.config

        torch._functorch.config.activation_memory_budget = options["share"]
        return torch.compile(model)
