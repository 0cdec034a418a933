"""Writes the training graphs of `test/graphs/training`: whole steps of small models, as `docs/training-graphs.md` says.

    python test/torch/graphs.py [NAME ...]

Durations are estimated, so that they are the same everywhere. Workspace is measured, on one thread, and rounded; it
depends on the version of PyTorch and, for convolutions and products of matrices, on the processor.
"""

import json
import pathlib
import sys

import torch
from models import make

from remat_opt.torch import capture

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "graphs" / "training"

UNIT = 16384
"""What workspace is rounded to: the interpreter's own objects are counted, too, and differ from run to run."""

OPTIMIZERS = {
    "vit": lambda parameters: torch.optim.AdamW(parameters, 1e-3),
    "gpt": lambda parameters: torch.optim.AdamW(parameters, 1e-3),
    "bert": lambda parameters: torch.optim.Adam(parameters, 1e-3),
    "convnext": lambda parameters: torch.optim.AdamW(parameters, 1e-3),
    "unet": lambda parameters: torch.optim.Adam(parameters, 1e-3),
    "resnet18": lambda parameters: torch.optim.SGD(parameters, 0.1, momentum=0.9, weight_decay=1e-4),
}


def graph(name):
    """The whole step of a model of `models.py` as a problem."""
    model, args = make(name)
    optimizer = OPTIMIZERS[name](model.parameters())
    problem = capture(model, args, optimizer, durations="estimated", name=name)
    for op in problem.document["ops"]:
        if "workspace" in op:
            op["workspace"] = round(op["workspace"] / UNIT) * UNIT
    return problem


def main(names):
    torch.set_num_threads(1)
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in names or OPTIMIZERS:
        text = json.dumps(graph(name).document, separators=(",", ":")) + "\n"
        (FOLDER / f"{name}.json").write_text(text, encoding="utf-8")
        print(f"{name}: {len(text)} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
