"""Steps of models in PyTorch's wrappers for several processes, in two processes whose heaps are counted.

    python test/torch/wrapped.py CASE=MEMORY...     CASE: see `CASES`
"""

import contextlib
import copy
import json
import sys
import warnings

import step

SEARCH = {"step_limit": 2_000, "threads": 1, "time_limit": 600.0}
BEFORE, COUNTED = 6, 3
"""Steps until all budgets are divided, and those that are counted then."""


def measure(cases):
    """For each process peak in bytes of the worst of the later steps, bits, and reports of cases, by name with their
    budgets."""
    from remat_opt.torch._metered import metered

    with metered() as environment:
        return step.in_two_processes(__file__, json.dumps(cases), LD_PRELOAD=environment["LD_PRELOAD"])


def layers(width, depth):
    """Some blocks of a perceptron in a module of its own: within wrappers, Dynamo does not trace what is in `torch.nn`."""
    from torch import nn

    class Layers(nn.Module):
        def __init__(self):
            super().__init__()
            blocks = (nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.GELU()) for _ in range(depth))
            self.blocks = nn.ModuleList(blocks)

        def forward(self, x):
            for block in self.blocks:
                x = block(x)
            return x

    return Layers()


def _ddp(width, batch, depth=5, parts=1, **options):
    """A model in `DistributedDataParallel`, whose gradients add up over parts of a batch."""

    def case(rank, compile):
        import torch
        from torch.nn.parallel import DistributedDataParallel

        torch.manual_seed(0)
        model, x = layers(width, depth), torch.randn(batch, width) + rank
        wrapped = DistributedDataParallel(model, bucket_cap_mb=1, **options)
        run = compile(wrapped)

        def steps():
            for place, part in enumerate(x.chunk(parts)):
                with contextlib.nullcontext() if place == parts - 1 else wrapped.no_sync():
                    run(part).square().mean().backward()

        return model, steps

    return case


def _fsdp(width, batch, depth=4, parts=1):
    """A model whose blocks are compiled one by one and sharded, as torchtitan does it."""

    def case(rank, compile):
        import torch
        from torch.distributed.fsdp import fully_shard

        torch.manual_seed(0)
        model, x = layers(width, depth), torch.randn(batch, width) + rank
        for block in model.blocks:
            block.forward = compile(block.forward)
            fully_shard(block)
        fully_shard(model)

        def steps():
            for place, part in enumerate(x.chunk(parts)):
                model.set_requires_gradient_sync(place == parts - 1)
                model(part).square().mean().backward()

        return model, steps

    return case


CASES = {
    "ddp": _ddp(256, 1024),
    "ddp views": _ddp(256, 1024, gradient_as_bucket_view=True),
    "ddp static": _ddp(256, 1024, static_graph=True),
    "ddp unused": _ddp(256, 1024, find_unused_parameters=True),
    "ddp accumulated": _ddp(256, 2048, parts=2, gradient_as_bucket_view=True),
    "ddp one graph": _ddp(64, 4096),
    "ddp wide": _ddp(512, 64),
    "fsdp": _fsdp(256, 1024),
    "fsdp accumulated": _fsdp(256, 2048, parts=2),
}


def _local(tensor):
    """What this process has of a tensor."""
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


def one(rank, name, memory):
    """Measures a case."""
    import remat_opt.torch
    import torch

    torch._dynamo.reset()
    backend = remat_opt.torch.backend(memory, "aot_eager", **SEARCH)
    plain, eager = CASES[name](rank, lambda one: one)
    model, run = CASES[name](rank, lambda one: torch.compile(one, backend=backend))
    same = True
    for _ in range(BEFORE):
        for each, of in ((eager, plain), (run, model)):
            of.zero_grad(set_to_none=True)
            each()
        same = same and all(torch.equal(_local(a.grad), _local(b.grad)) for a, b in zip(plain.parameters(), model.parameters()))
    usual, _ = step.peaks_of(eager, plain, COUNTED)
    peaks, _ = step.peaks_of(run, model, COUNTED)
    found = {"same": same, "peak": max(peaks), "eager": max(usual)}
    found["parameters"] = sum(_local(one).nbytes for one in model.parameters())
    return found | {"reports": [one.as_dict() for one in backend.reports]}


def child(rank, file, cases):
    """Measures in one of the processes."""
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=2)
    with warnings.catch_warnings(record=True):
        found = {name: one(rank, name, memory) for name, memory in cases.items()}
    print(json.dumps(found))
    dist.destroy_process_group()


def main(cases):
    """Prints a line for each case and process, in MB above parameters and inputs."""
    for name, both in measure(cases).items():
        for rank, found in enumerate(both):
            if not found["reports"]:
                print(f"{name:16} {cases[name]:4} {rank} {found['eager'] / 1e6:7.2f}: nothing was compiled", flush=True)
                continue
            report = found["reports"][0]
            promised, own = report["promised_bytes"], report["external_bytes"]
            sizes = (found["eager"], *(None if one is None else one - own for one in (report["baseline_bytes"], promised)))
            figures = " ".join("      -" if one is None else f"{one / 1e6:7.2f}" for one in (*sizes, found["peak"]))
            times = ", ".join(f"{100 * one['overhead']:+.0f}" for one in found["reports"])
            print(f"{name:16} {cases[name]:4} {rank} {figures}  {times} % {'same bits' if found['same'] else 'differs'}"
                  f" {report['fallback'] or ''} {report['notes']}", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(int(sys.argv[2]), sys.argv[3], json.loads(sys.argv[4]))
    else:
        main(dict(one.split("=") for one in sys.argv[1:]) or dict.fromkeys(CASES, "60%"))
