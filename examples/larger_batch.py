"""Trains a batch that does not fit into memory: once as it is, once within a budget.

    python examples/larger_batch.py --batch 64 --memory 400

Each try is a process of its own, which may take so many megabytes from its second step on: on a CPU beside what the
interpreter and libraries take, on a GPU of its memory. `docs/guides/pytorch.md` walks through it.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time

import torch
from torch import nn

SLACK = 8 << 20
"""What the interpreter may take beside."""
MAPPED = {"MALLOC_MMAP_THRESHOLD_": str(128 << 10)}
"""Environment in which glibc gives freed tensors back to the system, so that the limit counts what lives."""


class Classifier(nn.Module):
    """A transformer over patches of images."""

    def __init__(self, width=192, depth=6, heads=6, patch=8, size=64, classes=100):
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.position = nn.Parameter(torch.zeros(1, (size // patch) ** 2, width))
        layer = nn.TransformerEncoderLayer(
            width, heads, 4 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.body = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.head = nn.Linear(width, classes)

    def forward(self, images, labels):
        tokens = self.patches(images).flatten(2).transpose(1, 2) + self.position
        return nn.functional.cross_entropy(self.head(self.body(tokens).mean(1)), labels)


def train(batch, memory, planned, device, steps, time_limit):
    """Trains some steps within so many bytes, and gives the loss and the time of the fastest step."""
    torch.manual_seed(0)
    model = Classifier().to(device)
    images = torch.randn(batch, 3, 64, 64, device=device)
    labels = torch.randint(0, 100, (batch,), device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step = model
    if planned:
        import remat_opt.torch

        backend = remat_opt.torch.backend(memory, inner="aot_eager", time_limit=time_limit)
        step = torch.compile(model, backend=backend)
    held = sum(one.nbytes for one in (*model.parameters(), images, labels))
    seconds = []
    for number in range(1 + steps):
        if number == 1:
            # The first step plans and checks, on a CPU in this process.
            limit(memory - held, device)
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        loss = step(images, labels)
        loss.backward()
        optimizer.step()
        seconds.append(time.perf_counter() - start)
    if planned:
        print(backend.reports[0], file=sys.stderr)
    return {"loss": loss.item(), "seconds": round(min(seconds[1:]), 3)}


def limit(more, device):
    """From here on this process may take so many bytes more than it holds."""
    if device == "cuda":
        torch.cuda.empty_cache()
        share = (torch.cuda.memory_allocated() + more) / torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, share))
        return
    with open("/proc/self/status", encoding="ascii") as status:
        now = next(int(line.split()[1]) << 10 for line in status if line.startswith("VmData"))
    resource.setrlimit(resource.RLIMIT_DATA, (now + more + SLACK, resource.RLIM_INFINITY))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--memory", type=int, default=400, help="megabytes of the step, parameters and images among them")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--time-limit", type=float, default=10, help="seconds to search for a plan")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--only", choices=["as-it-is", "planned"], help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.only:
        memory, planned = arguments.memory * 1_000_000, arguments.only == "planned"
        found = train(arguments.batch, memory, planned, arguments.device, arguments.steps, arguments.time_limit)
        print(json.dumps(found))
        return
    for which in ("as-it-is", "planned"):
        line = [sys.executable, *sys.argv, "--only", which]
        run = subprocess.run(line, env=os.environ | MAPPED, capture_output=True, text=True, check=False)
        last = run.stderr.strip().splitlines()[-1:]
        print(f"{which}:", *(run.stdout.splitlines() if run.returncode == 0 else last))
        if which == "planned" and run.returncode == 0:
            print(*last)


if __name__ == "__main__":
    main()
