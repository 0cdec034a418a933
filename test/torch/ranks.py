"""Cases of planned training in two processes, which a test starts: `python ranks.py --child RANK FILE` prints JSON."""

import copy
import json
import sys
import warnings

import torch
import torch.distributed as dist
from models import SEARCH
from remat_opt import torch as remat
from remat_opt.torch import _compiled, _measure, _together
from remat_opt.torch._eager import Eager
from test_step import same, small
from test_step_check import negate_a_gradient
from torch import nn, optim
from torch.distributed._functional_collectives import all_reduce

class Split(nn.Module):
    """Adds up what the processes compute in its forward."""

    def __init__(self):
        super().__init__()
        parts = ((nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32)) for _ in range(3))
        self.layers = nn.Sequential(*(layer for part in parts for layer in part))

    def forward(self, x):
        y = self.layers(x)
        # Gradients of what other processes computed are theirs.
        return (y + all_reduce(y.detach(), "sum", dist.group.WORLD)).square().mean()


def whole(rank, broken=None, **options):
    """Steps of a model whose gradients the processes add up, one of them with a wrong plan or an error."""
    from remat_opt.torch import _step

    torch.manual_seed(rank)
    (model, args), right = small(), _step._module
    args = (args[0] + rank,)
    other = copy.deepcopy(model)

    def module(step, plan, outputs):
        made = right(step, plan, outputs)
        if rank == broken:
            negate_a_gradient(made.graph)
            made.recompile()
        return made

    _step._module = module
    optimizers = [optim.SGD(one.parameters(), 0.1, momentum=0.9) for one in (model, other)]
    try:
        step = remat.TrainStep(model, args, "min", **SEARCH, **options)
        for _ in range(2):
            for one, run in zip((model, other), (lambda: step(*args), lambda: Eager(other, None).step(args))):
                run()
                for parameter in one.parameters():
                    dist.all_reduce(parameter.grad)
            for optimizer in optimizers:
                optimizer.step()
                optimizer.zero_grad()
    finally:
        _step._module = right
    return {"same": same(model.state_dict(), other.state_dict()), **vars(step.report)}


def compiled(rank, inner="aot_eager", broken=None, kind="ddp"):
    """Steps of a compiled model: behind `DistributedDataParallel`, or with a collective in its forward."""
    torch.manual_seed(0)
    torch._dynamo.reset()
    model = small()[0] if kind == "ddp" else Split()
    x = torch.randn(16, 6 if kind == "ddp" else 32) + rank
    backend = remat.backend("min", inner, **SEARCH)
    planned = torch.compile(copy.deepcopy(model), backend=backend)
    if kind == "ddp":
        model, planned = (nn.parallel.DistributedDataParallel(one) for one in (model, planned))
    compare = _compiled.Compiled._compare

    def wrong(self, trial):
        return compare(self, trial) or "a gradient is wrong"

    if rank == broken:
        _compiled.Compiled._compare = wrong
    try:
        for _ in range(2):
            for one in (model, planned):
                one.zero_grad()
                one(x).backward()
    finally:
        _compiled.Compiled._compare = compare
    close = all(torch.allclose(a.grad, b.grad) for a, b in zip(model.parameters(), planned.parameters()))
    equal = all(torch.equal(a.grad, b.grad) for a, b in zip(model.parameters(), planned.parameters()))
    return {"same": equal, "close": close, "graphs": len(backend.reports), **vars(backend.reports[0])}


def raised(rank):
    """What a strict step raises where another process finds a difference."""
    try:
        whole(rank, broken=1, strict=True)
    except RuntimeError as error:
        return {"error": str(error)}
    return {}


def silent(rank):
    """A process makes a step that the other one does not make; the last case, since nobody waits any more."""
    _together.LIMIT = 1.0
    result = {}
    if rank == 0:
        (model, args), other = small(), small()[0]
        step = remat.TrainStep(model, args, "min", optimizer=optim.SGD(model.parameters(), 0.1), **SEARCH)
        step(*args)
        theirs = optim.SGD(other.parameters(), 0.1)
        Eager(other, step._updates.__class__(theirs)).step(args)
        result = {"same": same(model.state_dict(), other.state_dict()), **vars(step.report)}
    dist.barrier()
    return result


CASES = {
    "whole": whole,
    "whole, one is wrong": lambda rank: whole(rank, broken=1),
    "whole, strict": raised,
    "compiled": compiled,
    "compiled, one is wrong": lambda rank: compiled(rank, broken=1),
    "collective": lambda rank: compiled(rank, kind="split"),
    "collective, one is wrong": lambda rank: compiled(rank, kind="split", broken=0),
    "silent": silent,
}


def main(rank, file):
    torch.set_num_threads(1)
    # The cases are about agreement, not about time, and a process that measures takes seconds for each graph.
    _measure._measured = lambda calls, device: dict.fromkeys(calls, "it is not measured")
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=2)
    found = {}
    for name, case in CASES.items():
        with warnings.catch_warnings(record=True):
            found[name] = case(rank)
        dist.barrier()
    print(json.dumps(found))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[2]), sys.argv[3])
