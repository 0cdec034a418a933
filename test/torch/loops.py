"""Training loops with a budget and without, in a process whose heap is counted.

    python test/torch/loops.py [NAME...]    a table in Markdown; the names are those of `LOOPS`
"""

import json
import sys

import step
import torch
from loop_steps import LOOPS

MEMORY = "60%"
SEARCH = {"step_limit": 20_000, "threads": 1, "time_limit": 600.0}
FIRST, MEASURED = 8, 4
"""Steps until a budget is divided between several graphs, and those after it."""


def measure(names):
    """What loops took, by name: the peaks in bytes of later steps, bits, and reports."""
    return step.metered(__file__, names)


def child(names):
    """Measures in this process."""
    torch.set_num_threads(1)
    print(json.dumps({name: one(name) for name in names}))


def one(name):
    """Measures a loop."""
    import remat_opt.torch

    torch._dynamo.reset()
    backend = remat_opt.torch.backend(MEMORY, "aot_eager", **SEARCH)
    loops = []
    for compile in (lambda model: model, lambda model: torch.compile(model, backend=backend)):
        torch.manual_seed(0)
        loops.append(LOOPS[name](compile))
    same, peaks = True, []
    for number in range(FIRST + MEASURED):
        losses = []
        for _, train in loops:
            torch.manual_seed(number)
            peak, _, loss = step.peak_of(train, counts_updates=False)
            peaks.append(peak)
            losses.append(loss)
        same = same and torch.equal(*losses)
    states = ([value for model in modules for value in model.state_dict().values()] for modules, _ in loops)
    same = same and all(torch.equal(*pair) for pair in zip(*states, strict=True))
    later = peaks[2 * FIRST :]
    found = {"same": same, "eager": max(later[::2]), "peak": max(later[1::2])}
    return found | {"reports": [report.as_dict() for report in backend.reports]}


def promised(found):
    """What the reports promise at most above parameters and inputs; `None` where one does not."""
    reports = found["reports"]
    if not reports or any(each["fallback"] is not None or each["promised_bytes"] is None for each in reports):
        return None
    return max(each["promised_bytes"] - each["external_bytes"] for each in reports)


def row(name, found):
    """A row of the table."""
    most = promised(found)
    said = "not planned" if most is None else f"{most / 1e6:.2f}"
    over = ", ".join(f"+{100 * each['overhead']:.0f}" for each in found["reports"])
    bits = "same" if found["same"] else "**others**"
    return f"| {name} | {found['eager'] / 1e6:.2f} | {said} | {found['peak'] / 1e6:.2f} | {over} % | {bits} |"


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(json.loads(sys.argv[2]))
    else:
        print("| | eager, MB | promised | measured | ops' time | bits |\n|---|---|---|---|---|---|")
        for each in sys.argv[1:] or LOOPS:
            print(row(each, measure([each])[each]), flush=True)
