"""`torch.utils.checkpoint` around every block of the model, as its authors would place it by hand."""

from adapter import Adapter


class TorchCheckpoint(Adapter):
    needs = ("torch",)
    asked = {("order + recompute", "torch"): {"every block": {}}}

    def step(self, model, options):
        import functools

        import models  # It built the model, and knows its blocks.
        from torch.utils.checkpoint import checkpoint

        for unit in models.units(model):
            unit.forward = functools.partial(checkpoint, unit.forward, use_reentrant=False)
        return model
