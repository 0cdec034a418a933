"""Steps in which several compiled graphs run, or one several times, measured in a process whose heap is counted.

    python test/torch/several.py [--inductor] CASE=MEMORY...     CASE: see `CASES`

Beside eager PyTorch, or behind Inductor beside `torch.compile` alone.
"""

import copy
import json
import sys

import models
import step

STEPS = {"aot_eager": 4, "inductor": 5}
"""After how many steps nothing is planned any more: seen, measured, divided, and measured again; behind Inductor divided
again where a step has shown more than was predicted."""
SEARCH = {"step_limit": 20_000, "threads": 1, "time_limit": 600.0}


def measure(cases, inner="aot_eager"):
    """Peak in bytes of the worst of the later steps, without a plan, too; whether gradients have the same bits, and their
    largest relative error; and reports of cases, by name with their budgets."""
    return step.metered(__file__, {"cases": cases, "inner": inner})


class Broken(models.Chain):
    """Two graph breaks make three graphs of it."""

    def forward(self, x):
        import torch

        first, second, third, fourth, *_ = self.layers
        x = torch.tanh(first(x)) * torch.sigmoid(second(x))
        torch._dynamo.graph_break()
        x = torch.tanh(third(x)) * torch.sigmoid(x)
        torch._dynamo.graph_break()
        return (torch.tanh(fourth(x)) * torch.sigmoid(x)).square().mean()


def _breaks(compile, model, x):
    run = compile(model)
    return lambda: run(x).backward()


def _pair(compile, model, x):
    """An encoder and a decoder, compiled apart, with code of the user between them."""
    first, second = (compile(one) for one in (model.layers[:3], model.layers[3:]))
    return lambda: second(first(x).relu()).square().mean().backward()


def _pipeline(compile, model, x):
    """Forward of all micro-batches, then backward of all."""
    run = compile(model)

    def steps():
        losses = [run(part) for part in x.chunk(4)]
        for loss in losses:
            loss.backward()

    return steps


def _outside(compile, model, x):
    """One graph; the loss outside of it keeps what the graph gives."""
    import torch

    run, wide = compile(model.layers), torch.linspace(-1, 1, 32 * 64).view(32, 64)
    return lambda: torch.log_softmax(run(x) @ wide, 1).square().mean().backward()


def _before(compile, model, x):
    """One graph; what is before it has a large gradient, which comes after the backward of the graph."""
    run, tokens = compile(model.layers), x[:, 0].long() + 5
    return lambda: run(model.table(tokens)).square().mean().backward()


CASES = {"breaks": _breaks, "pair": _pair, "pipeline": _pipeline, "outside": _outside, "before": _before}


def make(case):
    """A model and its input."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    x = torch.randn(4096, 32)
    if case in ("pair", "outside", "before"):
        model = nn.Module()
        if case == "before":
            model.table = nn.Embedding(60_000, 32)
        model.layers = nn.Sequential(*(nn.Sequential(nn.Linear(32, 32), nn.GELU()) for _ in range(6)))
        return model, x
    return (Broken(4) if case == "breaks" else models.Chain()), x


def child(order):
    """Measures in this process."""
    import torch

    torch.set_num_threads(1)
    print(json.dumps({name: one(name, memory, order["inner"]) for name, memory in order["cases"].items()}))


def one(name, memory, inner):
    """Measures a case."""
    import remat_opt.torch
    import torch

    torch._dynamo.reset()
    model, x = make(name)
    case, plain = CASES[name], copy.deepcopy(model)
    backend = remat_opt.torch.backend(memory, inner, **SEARCH)
    usual = case((lambda one: one) if inner == "aot_eager" else torch.compile, plain, x)
    run = case(lambda one: torch.compile(one, backend=backend), model, x)
    usual()
    theirs = {name: one.grad for name, one in plain.named_parameters()}
    same, error = True, 0.0
    for _ in range(STEPS[inner]):
        model.zero_grad(set_to_none=True)
        run()
        mine = {name: one.grad for name, one in model.named_parameters()}
        same = same and all(torch.equal(mine[one], theirs[one]) for one in theirs)
        error = max(error, step.error(mine, theirs))
    del mine
    without, _ = step.peaks_of(usual, plain, 2)
    peaks, _ = step.peaks_of(run, model, 3)
    found = {"same": same, "error": error, "peak": max(peaks[1:]), "without": max(without)}
    return found | {"reports": [one.as_dict() for one in backend.reports]}


if __name__ == "__main__":
    if sys.argv[1] == "--child":
        child(json.loads(sys.argv[2]))
    else:
        inner, words = "aot_eager", sys.argv[1:]
        if words[:1] == ["--inductor"]:
            inner, words = "inductor", words[1:]
        print(json.dumps(measure(dict(one.split("=") for one in words), inner), indent=2))
