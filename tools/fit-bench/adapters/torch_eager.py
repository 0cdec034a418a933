"""PyTorch as it is: the reference for steps, and `torch.compile` with nothing set."""

from adapter import Adapter


class TorchEager(Adapter):
    needs = ("torch",)
    asked = {("order + recompute", "torch"): {"eager": {}, "torch.compile": {"compile": True}}}

    def step(self, model, options):
        import torch

        return torch.compile(model) if options.get("compile") else model
