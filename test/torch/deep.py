"""Time of planned steps of many ops beside PyTorch's own backend `aot_eager`, in one process, in turns.

    python test/torch/deep.py [MODEL:MEMORY...]    a table in Markdown; MODEL is a number of layers of a small GPT, or a
                                                   name of `models`

`stated` is what the report says that a step takes, `measured` what it took, both as shares of the stock step. Of
processor time, the median of pairs that ran one after the other. One thread.
"""

import statistics
import sys
import time

import models
import remat_opt.torch
import torch

PAIRS = 15


def make(name):
    """A model and its inputs, the same in every call."""
    torch.manual_seed(0)
    if name.isdigit():
        return models.Language(64, int(name), 4, 64, 256), models._tokens(8, 64, 256)
    return models.make(name)


def compiled(name, backend):
    """A function that makes a step and gives its seconds of processor time, and the seconds of the first call."""
    model, inputs = make(name)
    run = torch.compile(model, backend=backend)

    def step():
        model.zero_grad(set_to_none=True)
        start = time.process_time()
        run(*inputs).backward()
        return time.process_time() - start

    start = time.perf_counter()
    step()
    return step, time.perf_counter() - start


def row(name, memory):
    """A row of the table."""
    backend = remat_opt.torch.backend(memory, "aot_eager", check=False, strict=True)
    planned, first = compiled(name, backend)
    stock, stock_first = compiled(name, "aot_eager")
    times = []
    for number in range(PAIRS + 2):
        # Neither is always the one that runs behind the other.
        pair = [(one, one()) for one in ((planned, stock) if number % 2 else (stock, planned))]
        times.append((dict(pair)[planned], dict(pair)[stock]))
    del times[:2]
    ratio = statistics.median(mine / theirs for mine, theirs in times)
    mine, theirs = (1e3 * statistics.median(column) for column in zip(*times))
    report = backend.reports[0]
    cells = [name, report.ops, memory, f"{mine:.0f}", f"{theirs:.0f}", f"{ratio:.2f}", f"{1 + report.overhead:.2f}"]
    cells += [f"{first:.0f}", f"{stock_first:.0f}", f"{report.seconds:.0f}"]
    return f"| {' | '.join(map(str, cells))} |"


if __name__ == "__main__":
    torch.set_num_threads(1)
    names = ("model", "ops", "memory", "ms", "stock, ms", "measured", "stated")
    names += ("first call, s", "stock, s", "planning, s")
    print(f"| {' | '.join(names)} |\n{'|---' * len(names)}|")
    for word in sys.argv[1:] or ("24:50%", "96:50%", "loop:60%"):
        print(row(*word.split(":")), flush=True)
