"""Budgets behind Inductor: ours beside PyTorch's own, what shares stand for, and what a first call takes.

    python test/torch/budgets.py [MODEL...]            PyTorch's `activation_memory_budget`, ours asked for its bytes
    python test/torch/budgets.py --shares [MODEL...]   what shares are of, beside the measured peak without a plan
    python test/torch/budgets.py --first [MODEL...]    the first call, with nothing in any cache

One thread. Two variants of a step alternate in one process, so that noise meets both; a ratio of times is the median
of the ratios of neighbours. Rows come as lines of JSON, then as a table in Markdown.
"""

import copy
import json
import os
import statistics
import sys
import tempfile
import time

from step import metered, peaks_of

MODELS = ("vit", "gpt", "unet", "moe")
KNOBS = (0.8, 0.6, 0.4, 0.2)
"""Values of `activation_memory_budget`."""
ROUNDS = 15
"""Steps of each variant."""
FIRST = (None, "60%", "40%")
"""What a first call is timed of: PyTorch without a plan, and shares."""


def compared(model):
    """One row for each of PyTorch's budgets."""
    for knob in KNOBS:
        yield metered(__file__, {"do": "compare", "model": model, "knob": knob})


def shares(model):
    """One row: the baseline of shares, and what is measured without a plan."""
    yield metered(__file__, {"do": "share", "model": model})


def first_calls(model):
    """One row for each of `FIRST`, each in a process of its own whose caches are empty."""
    for memory in FIRST:
        with tempfile.TemporaryDirectory() as place:
            caches = {"TORCHINDUCTOR_CACHE_DIR": f"{place}/inductor", "XDG_CACHE_HOME": f"{place}/own"}
            yield metered(__file__, {"do": "first", "model": model, "memory": memory}, **caches)


def variant(model, inputs, memory=None, knob=1.0):
    """A copy of a model, a step of it that was compiled and ran once, and the report where there is a budget."""
    import remat_opt.torch
    import torch

    own = copy.deepcopy(model)
    backend = "inductor" if memory is None else remat_opt.torch.backend(memory)
    with torch._functorch.config.patch(activation_memory_budget=knob):
        run = torch.compile(own, backend=backend)
        run(*inputs).backward()
    return own, lambda: run(*inputs).backward(), None if memory is None else backend.reports[-1]


def external(model, inputs):
    """Bytes of parameters, buffers and inputs."""
    return sum(one.untyped_storage().nbytes() for one in (*model.parameters(), *model.buffers(), *inputs))


def compare(model, inputs, order):
    """PyTorch under a budget of its own, and ours asked for as many bytes."""
    theirs, their_run, _ = variant(model, inputs, knob=order["knob"])
    above = max(peaks_of(their_run, theirs, 3)[0])
    ours, our_run, report = variant(model, inputs, memory=external(model, inputs) + above)
    steps = []
    for _ in range(ROUNDS):
        steps.append([*peaks_of(their_run, theirs, 1), *peaks_of(our_run, ours, 1)])
    peaks = [max(step[place][0] for step in steps) for place in (0, 2)]
    seconds = [statistics.median(step[place][0] for step in steps) for place in (1, 3)]
    ratio = statistics.median(step[3][0] / step[1][0] for step in steps)
    return {"peaks": peaks, "seconds": seconds, "ratio": ratio, **told(report)}


def share(model, inputs, order):
    """The baseline of shares, and the measured peak without a plan."""
    theirs, their_run, _ = variant(model, inputs)
    measured = max(peaks_of(their_run, theirs, 3)[0])
    _, _, report = variant(model, inputs, memory="100%")
    return {"measured": measured, "baseline": report.baseline_bytes - report.external_bytes, **told(report)}


def first(model, inputs, order):
    """The time of a first call, after another model has loaded the compiler."""
    import torch

    small = torch.nn.Linear(8, 8)
    torch.compile(small)(torch.randn(8, 8)).sum().backward()
    processors, clock = used(), time.perf_counter()
    _, _, report = variant(model, inputs, order["memory"])
    return {"seconds": time.perf_counter() - clock, "processors": used() - processors, **told(report)}


def used():
    """Seconds of processor time of this process and of those that it waited for."""
    return sum(os.times()[:4])


def told(report):
    """What the report says."""
    if report is None:
        return {}
    names = ("split", "tried", "fallback", "gradients", "notes", "external_bytes")
    return {name: getattr(report, name) for name in names}


def comparisons(model, rows):
    """Rows of `compared` in Markdown."""
    yield "| | PyTorch's budget | its peak, MB | our peak, MB | its ms | our ms | ratio |"
    yield "|---" * 7 + "|"
    for row in rows:
        (their_peak, our_peak), (their_time, our_time) = row["peaks"], row["seconds"]
        yield (f"| {model} | {row['knob']} | {their_peak / 1e6:.1f} | {our_peak / 1e6:.1f} | {1e3 * their_time:.0f} "
               f"| {1e3 * our_time:.0f} | {row['ratio']:.2f} |")


def baselines(model, rows):
    """Rows of `shares` in Markdown."""
    yield "| | shares are of, MB | measured without a plan, MB |\n|---|---|---|"
    for row in rows:
        yield f"| {model} | {row['baseline'] / 1e6:.1f} | {row['measured'] / 1e6:.1f} |"


def times(model, rows):
    """Rows of `first_calls` in Markdown."""
    yield "| | | seconds | of PyTorch's | processor's | of PyTorch's |\n|---|---|---|---|---|---|"
    plain = rows[0]
    for row in rows:
        wall, own = row["seconds"], row["processors"]
        yield (f"| {model} | {row['memory'] or '`torch.compile`'} | {wall:.1f} | {wall / plain['seconds']:.2f} "
               f"| {own:.1f} | {own / plain['processors']:.2f} |")


TABLES = {
    "": (compared, comparisons, MODELS),
    "--shares": (shares, baselines, (*MODELS, "resnet18")),
    "--first": (first_calls, times, MODELS),
}


def child(order):
    """Answers an order in this process."""
    import models
    import torch

    torch.set_num_threads(1)
    model, inputs = models.make(order["model"])
    print(json.dumps(order | {"compare": compare, "share": share, "first": first}[order["do"]](model, inputs, order)))


def main(words):
    rows_of, table, usual = TABLES[next((word for word in words if word.startswith("--")), "")]
    for model in [word for word in words if not word.startswith("--")] or usual:
        rows = []
        for row in rows_of(model):
            rows.append(row)
            print(json.dumps(row), file=sys.stderr, flush=True)
        print("\n".join(table(model, rows)), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(json.loads(sys.argv[2]))
    else:
        main(sys.argv[1:])
