"""Graphs of plans replayed against what a step overwrites: every run of an op reads what it reads without a plan.

The plans are made up here, not searched for: updates as early and further runs as late as the problem allows, so that a
reader that the problem does not know of comes too late. Nightly there are more modules, and more plans for each.
"""

import random

import pytest
import torch
import torch.nn.functional as F
from need import NIGHTLY
from remat_opt.torch import _whole
from remat_opt.torch._emit import drop_unused, emit, original
from remat_opt.torch._measure import Costs, estimate
from remat_opt.torch._optimizer import Updates
from remat_opt.torch._state import digest
from remat_opt.torch._trace import tensors_of
from remat_opt.torch._whole import whole_step
from torch import fx, nn, optim

MODULES = range(30 if NIGHTLY else 12)
PLANS = 50 if NIGHTLY else 2
ONCE_READ = (3, 4)
"""The running statistics among the arguments of a batch norm, which further runs go without."""


class Counts(nn.Module):
    """Overwrites a buffer in place, and reads it before and after."""

    def __init__(self, width):
        super().__init__()
        self.register_buffer("seen", torch.zeros(width))
        self.weight = nn.Parameter(torch.randn(width))

    def forward(self, x):
        before = x * torch.sigmoid(self.seen) + self.weight
        with torch.no_grad():
            self.seen.mul_(0.9).add_(x.mean(0))
        return before * torch.tanh(self.seen * self.weight)


class Inner(nn.Module):
    """Overwrites its own results, and a view of them."""

    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x):
        y = self.linear(x) * 2
        y[:, : y.shape[1] // 2].mul_(0.5)
        y.add_(x)
        return F.relu_(y)


class Mixed(nn.Module):
    """Random layers on vectors, some of them with the same weights, after random layers on images."""

    def __init__(self, choose):
        super().__init__()
        channels, width = choose.choice([4, 8]), choose.choice([6, 12])
        images = [nn.Conv2d(3, channels, 3, padding=1)]
        for _ in range(choose.randint(1, 2)):
            images.append(nn.BatchNorm2d(channels, momentum=choose.choice([0.0, 0.1, 0.9])))
            images.append(choose.choice([nn.ReLU(inplace=True), nn.SiLU(), nn.Dropout2d(0.2), nn.Hardtanh(inplace=True)]))
            images.append(nn.Conv2d(channels, channels, 3, padding=1, groups=choose.choice([1, 2])))
        vectors = [nn.Linear(4 * channels, width)]
        for _ in range(choose.randint(2, 5)):
            kinds = [
                lambda: nn.Linear(width, width),
                lambda: nn.BatchNorm1d(width, track_running_stats=choose.random() < 0.7),
                lambda: nn.BatchNorm1d(width).eval(),
                lambda: nn.GroupNorm(2, width),
                lambda: nn.Tanh(),
                lambda: nn.Sequential(nn.Linear(width, width), nn.ELU(inplace=True)),
                lambda: nn.Dropout(0.3),
                lambda: Counts(width),
                lambda: Inner(width),
            ]
            vectors.append(choose.choice(kinds)())
        self.images, self.vectors, self.last = nn.Sequential(*images), nn.Sequential(*vectors), nn.Linear(width, width)
        linears = [one for one in self.vectors.modules() if isinstance(one, nn.Linear) and one.weight.shape == (width, width)]
        if linears:
            self.last.weight = choose.choice(linears).weight
        norms = [one for one in self.images.modules() if isinstance(one, nn.BatchNorm2d)]
        if choose.random() < 0.5:
            norms[-1].weight = norms[0].weight
            norms[0].bias = norms[0].weight
        if choose.random() < 0.3:
            nn.init.zeros_(norms[0].weight)

    def forward(self, x):
        y = F.adaptive_avg_pool2d(self.images(x), 2).flatten(1)
        return self.last(self.vectors(y)).square().mean()


def made_up(document, seed):
    """A plan that the problem allows, with updates as early as possible and as many further runs as possible."""
    choose, ops = random.Random(seed), document["ops"]
    producer = {tensor: index for index, op in enumerate(ops) for tensor in op["defines"]}
    before, after = {}, {}
    for pair in document["anti_dependences"]:
        before.setdefault(pair["after"], set()).add(pair["before"])
        after.setdefault(pair["before"], set()).add(pair["after"])
    needs = [{producer[one] for one in op["reads"] if one in producer} for op in ops]
    done, steps = set(), []

    def may_run_again(op):
        return ops[op].get("recomputable", True) and not after.get(op, set()) & done

    def run(op, depth):
        for one in sorted(needs[op]):
            if depth and may_run_again(one) and choose.random() < 0.7:
                run(one, depth - 1)
        steps.append({"op": "compute", "node": ops[op]["name"]})

    while len(done) < len(ops):
        ready = [
            op for op in range(len(ops)) if op not in done and needs[op] <= done and before.get(op, set()) <= done
        ]
        urgent = [op for op in ready if op in before or not ops[op].get("recomputable", True)]
        op = choose.choice(urgent if urgent and choose.random() < 0.9 else ready)
        run(op, 3)
        done.add(op)
    return {"steps": steps}


class Recorder(fx.Interpreter):
    """Runs a graph, and keeps hashes of what each run of each op reads."""

    def __init__(self, module):
        super().__init__(module)
        self.reads = []

    def run_node(self, node):
        if node.op == "call_function" and "getitem" not in str(node.target):
            again = original(node.name) != node.name
            values = [self.content(one) for one in flat(node.args)]
            self.reads.append((original(node.name), again, str(node.target), values))
        return super().run_node(node)


    def content(self, argument):
        """A hash of an argument; what was not written yet is all the same."""
        value = self.env[argument] if isinstance(argument, fx.Node) else argument
        if not isinstance(value, torch.Tensor):
            return repr(value)
        return "empty" if "empty" in str(argument.target) else digest(value)


def flat(args):
    return [item for one in args for item in (one if isinstance(one, (list, tuple)) else (one,))]


def inputs_of(step, model, args, updates):
    """Copies of what a step takes, in the order of its graph."""
    own, buffers = dict(model.named_parameters()), dict(model.named_buffers())
    states = [updates.state(own[name]) for name in step.updated]
    found = updates.record([own[name] for name in step.updated])
    values = [own[name] for name in step.traced.parameters] + [buffers[name] for name in step.traced.buffers]
    values += tensors_of(args)
    for state, update in zip(states, found):
        values += [*state, torch.tensor(update.scalars, dtype=torch.float64)]
    return [one.detach().clone() for one in values]


def replay(module, inputs):
    recorder = Recorder(module)
    torch.manual_seed(5)
    with torch.no_grad():
        results = recorder.run(*inputs)
    return recorder.reads, [digest(one) for one in (*results, *inputs)]


@pytest.mark.parametrize("number", MODULES)
def test_every_run_reads_what_it_reads_without_a_plan(number, monkeypatch):
    monkeypatch.setattr(_whole, "measure", lambda graph: Costs({one: estimate(one) for one in graph.nodes}))
    torch.manual_seed(number)
    choose = random.Random(number)
    model, args = Mixed(choose), (torch.randn(4, 3, 6, 6),)
    kinds = [(optim.SGD, {"momentum": 0.9}), (optim.Adam, {}), (optim.RMSprop, {}), (optim.SGD, {"weight_decay": 0.1})]
    kind, options = choose.choice(kinds)
    updates = Updates(kind(model.parameters(), 0.1, **options))
    step = whole_step(model, args, updates)
    inputs = inputs_of(step, model, args, updates)
    expected, left = replay(step.in_traced_order(), [one.clone() for one in inputs])
    expected = {name: (target, values) for name, _, target, values in expected}
    again = 0
    for seed in range(PLANS):
        emitted = emit(step.source, made_up(step.source.document, 1000 * number + seed))
        emitted.graph.output(tuple(emitted.at_end[one] for one in step.outputs))
        drop_unused(emitted.graph)
        reads, found = replay(fx.GraphModule(step.traced.root, emitted.graph), [one.clone() for one in inputs])
        for name, is_again, target, values in reads:
            usual, wanted = expected[name]
            if target != usual:  # A batch norm without running statistics.
                wanted = [one for index, one in enumerate(wanted) if index not in ONCE_READ]
            assert values == wanted, f"plan {seed}: `{name}` reads something else{' in a further run' * is_again}"
            again += is_again
        assert found == left
    assert again > 0
