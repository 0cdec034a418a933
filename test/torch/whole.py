"""Measures whole steps and planned modules in a process whose heap is counted.

    python test/torch/whole.py MODEL (step|checkpoint) MEMORY [OPTIMIZER]

The peak is the worst of later steps, above parameters, state and inputs, and with that of forward and backward alone
for `checkpoint`.
"""

import json
import sys

import models
import step

STEPS = 5


def optimizer_of(name, parameters):
    """An optimizer of PyTorch by a short name."""
    import torch

    if name == "sgd":
        return torch.optim.SGD(parameters, 0.05, momentum=0.9, weight_decay=1e-3)
    return {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[name](parameters, 1e-3)


def measure(model, kind, memory, optimizer="sgd", **keywords):
    """Peaks of a model, `kind` `"eager"`, `"step"` or `"checkpoint"`: `peak`, `first_peak`, `promised`, `checked` (what a
    first step that is compared with eager is said to take) and `external` in bytes, and `seconds` of processor time of
    the fastest step."""
    order = {"model": model, "kind": kind, "memory": memory, "optimizer": optimizer, "keywords": keywords}
    return step.metered(__file__, order)


def child(order):
    """Measures in this process."""
    import torch
    from remat_opt import torch as remat

    torch.set_num_threads(1)
    model, args = models.make(order["model"])
    if order["kind"] == "checkpoint":
        planned = remat.checkpoint(model, args, order["memory"], **order["keywords"])

        def run():
            planned(*args).backward()

    elif order["kind"] == "step":
        optimizer = optimizer_of(order["optimizer"], model.parameters())
        train = remat.TrainStep(model, args, order["memory"], optimizer=optimizer, **order["keywords"])

        def run():
            train(*args)

    else:
        optimizer = optimizer_of(order["optimizer"], model.parameters())

        def run():
            model(*args).backward()
            optimizer.step()

    peaks, times = step.peaks_of(run, model, STEPS)
    result = {"peak": max(peaks[1:]), "first_peak": peaks[0], "seconds": min(times[1:])}
    if order["kind"] != "eager":
        report = remat.checkpoint_report(planned) if order["kind"] == "checkpoint" else train.report
        result |= {"promised": report.promised_bytes - report.external_bytes, "external": report.external_bytes}
        if report.check_bytes is not None:
            result["checked"] = report.check_bytes - report.external_bytes
        result |= {"gradients": report.gradients, "ops": report.ops, "recomputes": report.recomputes, "planning_seconds": report.seconds}
    print(json.dumps(result))


if __name__ == "__main__":
    if sys.argv[1] == "--child":
        child(json.loads(sys.argv[2]))
    else:
        print(json.dumps(measure(*sys.argv[1:]), indent=2))
