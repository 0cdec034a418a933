"""Peaks and times of training steps, as tables of `docs/guides/pytorch.md`.

    python test/torch/bench.py [--inductor|--offload] [MODEL...]    one line of JSON for each row, then a table in Markdown

With `--inductor` it is the table of what Inductor compiles, which takes minutes for each row; with `--offload`, of plans
in which values move to a file. One thread.
"""

import json
import sys

from step import measure

MODELS = ("vit", "gpt", "gpt-dropout", "bert", "convnext", "unet", "resnet18")
SEARCH = {"time_limit": 20.0}
SHARES = ("80%", "60%", "40%", "min")
KNOBS = ("0.5", "0.2")


def rows(model):
    """Name, measured step and promised bytes of each row."""
    yield "eager", measure(model, "eager"), None
    yield "checkpoint of each block", measure(model, "checkpoint"), None
    for share in SHARES:
        step = measure(model, "aot_eager", share, **SEARCH)
        yield f"ours, aot_eager, {share}", step, promised(step)


def inductor_rows(model):
    """The same of what Inductor compiles, with the budget in bytes, where there is one."""
    yield "`torch.compile`", measure(model, "compile"), None
    for knob in KNOBS:
        yield f"`activation_memory_budget` of {knob}", measure(model, "compile", knob), None
    for share in SHARES:
        step = measure(model, "inductor", share)
        yield f"`inductor`, {share}", step, budget(step, share)


def offload_rows(model):
    """What keeps, computes again and moves, with the promised bytes."""
    yield "all is kept", measure(model, "eager"), None
    yield "checkpoint of each block", measure(model, "checkpoint"), None
    yield "`save_on_cpu`", measure(model, "save_on_cpu"), None
    for share in ("40%", "25%", "min"):
        for title, keywords in ((f"{share}, computed again", {}), (f"{share}, or moved", {"offload": True})):
            step = measure(model, "aot_eager", share, **SEARCH, **keywords)
            yield title, step, promised(step)


def offload_cell(step, promise):
    """A cell of that table: peak, promise, time, what moves, and the distance from the fastest plan."""
    said = "" if promise is None else f" ({promise / 1e6:.1f})"
    cell = f"{step['peak'] / 1e6:.1f}{said} / {1e3 * step['wall']:.0f}"
    if promise is None:
        return cell
    report = step["reports"][0]
    moved = f", {report['moved_bytes'] / 1e6:.0f} MB move" if report["moved_bytes"] else ""
    return f"{cell}, +{100 * report['overhead']:.1f} %{moved}, gap {100 * (report['gap'] or 0):.1f} %"


def budget(step, share):
    """The bytes above parameters and inputs that a share stands for."""
    report = step["reports"][0]
    above = report["baseline_bytes"] - report["external_bytes"]
    return None if share == "min" else above * float(share[:-1]) / 100


def promised(step):
    """What a step is said to take above parameters and inputs; `None` where it was not planned."""
    report = step["reports"][0]
    return None if report["promised_bytes"] is None else report["promised_bytes"] - report["external_bytes"]


def table(found):
    """The rows of a model in Markdown."""
    for name, step, promise in found:
        bits = "same" if step["bits"] else f"{step['error']:.0e}"
        said = "" if promise is None else f"{promise / 1e6:.1f}"
        yield f"| {name} | {step['peak'] / 1e6:.1f} | {said} | {1e3 * step['seconds']:.0f} | {bits} |"


def inductor_cell(step, asked):
    """A cell of the table of Inductor: peak, budget, time."""
    said = "" if asked is None else f" ({asked / 1e6:.1f})"
    return f"{step['peak'] / 1e6:.1f}{said} / {1e3 * step['seconds']:.0f}"


def side_by_side(found, cell):
    """The rows of several models in Markdown."""
    models = list(found)
    yield f"| peak, MB (budget) / ms | {' | '.join(models)} |"
    yield "|---" * (len(models) + 1) + "|"
    for several in zip(*found.values()):
        cells = [cell(step, asked) for _, step, asked in several]
        yield f"| {several[0][0]} | {' | '.join(cells)} |"


def collect(model, each):
    """All rows of a model, each printed as soon as it is there."""
    found = []
    for row in each(model):
        found.append(row)
        print(json.dumps({"model": model, "row": row[0], **row[1]}), file=sys.stderr, flush=True)
    return found


def main(words):
    models = [word for word in words if not word.startswith("--")] or MODELS
    if "--inductor" in words:
        print("\n".join(side_by_side({model: collect(model, inductor_rows) for model in models}, inductor_cell)), flush=True)
        return
    if "--offload" in words:
        print("\n".join(side_by_side({model: collect(model, offload_rows) for model in models}, offload_cell)), flush=True)
        return
    for model in models:
        found = collect(model, rows)
        print(f"\n| {model} | peak, MB | promised, MB | CPU, ms | bits |\n|---|---|---|---|---|")
        print("\n".join(table(found)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
