"""Models as programs of ExecuTorch, with the memory that a planner gives them.

    python test/torch/exported.py      prints the table of `docs/guides/executorch.md`
"""

import models
import torch
import torch.nn.functional as F
from executorch.exir import ExecutorchBackendConfig, to_edge
from executorch.exir.memory_planning import MemoryPlanningAlgorithmSuite, greedy
from executorch.exir.passes import MemoryPlanningPass
from torch import nn


class Branches(nn.Module):
    """Convolutions side by side, of sizes that do not fit each other."""

    def __init__(self, *stages):
        super().__init__()
        inside, self.stages = 3, nn.ModuleList()
        for widths in stages:
            self.stages.append(nn.ModuleList(nn.Conv2d(inside, one, 3, padding=1) for one in widths))
            inside = sum(widths)

    def forward(self, x):
        for number, branches in enumerate(self.stages):
            x = torch.cat([torch.relu(branch(x)) for branch in branches], 1)
            x = F.max_pool2d(x, 2) if number % 2 else x
        return x.mean((2, 3))


class Dense(nn.Module):
    """Every convolution reads what all before it gave."""

    def __init__(self, width=12, depth=6):
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, 2, 1)
        self.layers = nn.ModuleList(nn.Conv2d(8 + i * width, width, 3, padding=1) for i in range(depth))

    def forward(self, x):
        x = self.first(x)
        for layer in self.layers:
            x = torch.cat([x, F.relu(layer(x))], 1)
        return x.mean((2, 3))


def residual():
    """Three blocks of a ResNet."""
    blocks = [models.BasicBlock(3, 16, 1), models.BasicBlock(16, 32, 2), models.BasicBlock(32, 48, 2)]
    return nn.Sequential(*blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(48, 10))


MODELS = {
    "branches of convolutions, 20x20": (lambda: Branches((5, 9, 14), (3, 8, 17)), (1, 3, 20, 20)),
    "transformer block": (lambda: models.Block(64, 4), (1, 49, 64)),
    "three transformer blocks": (lambda: nn.Sequential(*(models.Block(72, 6) for _ in range(3))), (2, 50, 72)),
    "three residual blocks, 64x64": (residual, (1, 3, 64, 64)),
    "dense block, 64x64": (Dense, (1, 3, 64, 64)),
    "four stages of branches, 60x60": (lambda: Branches(*[(12, 20, 17, 7)] * 4), (1, 3, 60, 60)),
}


def program(name, *algorithms):
    """The program of a model planned by algorithms, its input, and what the model itself gives."""
    torch.manual_seed(0)
    build, shape = MODELS[name]
    model, x = build().eval(), torch.randn(shape)
    planning = MemoryPlanningPass(memory_planning_algo=MemoryPlanningAlgorithmSuite(list(algorithms)))
    edge = to_edge(torch.export.export(model, (x,)))
    return edge.to_executorch(ExecutorchBackendConfig(memory_planning_pass=planning)), x, model(x)


def sizes(made):
    """Bytes of the memories of a program; the first one is for constants."""
    return made.exported_program().graph_module.meta["non_const_buffer_sizes"]


def main():
    from remat_opt.executorch import memory_planner

    for name in MODELS:
        planner = memory_planner(step_limit=100_000)
        ours, theirs = sizes(program(name, planner)[0])[1], sizes(program(name, greedy)[0])[1]
        (placement,) = planner.placements
        above = f"{100 * (theirs / ours - 1):.1f} %"
        print(f"| {name} | {len(placement.offsets)} | {placement.load:,} | {theirs:,} | {ours:,} | {above} |")


if __name__ == "__main__":
    main()
