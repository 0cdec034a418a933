"""Trains a batch that does not fit into memory: once as it is, once within a budget.

    python examples/larger_batch.py --batch 64 --memory 700MB

Each try is a process of its own that may take so many bytes and no more: on a CPU beside what PyTorch itself takes, on a
GPU of its memory. `docs/guides/pytorch.md` walks through it.
"""

import argparse
import json
import resource
import subprocess
import sys
import time

import torch
from torch import nn


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


def train(batch, memory, planned, device, steps):
    """Trains some steps and prints what they took."""
    torch.manual_seed(0)
    model = Classifier().to(device)
    images = torch.randn(batch, 3, 64, 64, device=device)
    labels = torch.randint(0, 100, (batch,), device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step, report = model, None
    if planned:
        import remat_opt.torch

        backend = remat_opt.torch.backend(memory, inner="aot_eager")
        step = torch.compile(model, backend=backend)
    # What the process has until here (interpreter, libraries, parameters, the batch) does not count.
    limit(memory, device)
    seconds = []
    for _ in range(steps):
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        loss = step(images, labels)
        loss.backward()
        optimizer.step()
        seconds.append(time.perf_counter() - start)
    if planned:
        (report,) = backend.reports
        print(report, file=sys.stderr)
    print(json.dumps({"loss": loss.item(), "seconds": min(seconds[1:] or seconds)}))


def limit(memory, device):
    """From here on this process may take so many bytes more."""
    from remat_opt.torch import parse_bytes

    more = parse_bytes(memory)
    if device == "cuda":
        total = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, more / total))
        return
    with open("/proc/self/status", encoding="ascii") as status:
        held = next(int(line.split()[1]) << 10 for line in status if line.startswith("VmData"))
    resource.setrlimit(resource.RLIMIT_DATA, (held + more, resource.RLIM_INFINITY))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--memory", default="700MB")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--only", choices=["as-it-is", "planned"], help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.only:
        train(arguments.batch, arguments.memory, arguments.only == "planned", arguments.device, arguments.steps)
        return
    for which in ("as-it-is", "planned"):
        run = subprocess.run([sys.executable, *sys.argv, "--only", which], stdout=subprocess.PIPE, text=True, check=False)
        found = json.loads(run.stdout.splitlines()[-1]) if run.returncode == 0 else "out of memory"
        print(f"{which}: {found}")


if __name__ == "__main__":
    main()
