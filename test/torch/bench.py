"""Peaks and times of training steps, as tables of `docs/pytorch.md`.

    python test/torch/bench.py [--inductor] [MODEL...]      one line of JSON for each row, then a table in Markdown

`--inductor` adds the rows that Inductor compiles, which takes minutes for each. One thread.
"""

import json
import sys

from step import measure

MODELS = ("vit", "gpt", "gpt-dropout", "bert", "convnext", "unet", "resnet18")
SEARCH = {"time_limit": 20.0}
SHARES = ("80%", "60%", "40%", "min")


def rows(model, with_inductor):
    """Name, measured step and promised bytes of each row."""
    yield "eager", measure(model, "eager"), None
    yield "checkpoint of each block", measure(model, "checkpoint"), None
    budget = None
    for share in SHARES:
        step = measure(model, "aot_eager", share, **SEARCH)
        budget = step["reports"][0]["promised_bytes"] if share == "40%" else budget
        yield f"ours, aot_eager, {share}", step, promised(step)
    if with_inductor:
        yield "torch.compile", measure(model, "compile"), None
        for share in ("0.5", "0.2"):
            yield f"torch.compile, activation_memory_budget={share}", measure(model, "compile", share), None
        step = measure(model, "inductor", budget, **SEARCH)
        yield "ours, inductor, the bytes of 40%", step, promised(step)


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


def main(words):
    with_inductor = "--inductor" in words
    for model in [word for word in words if not word.startswith("--")] or MODELS:
        found = []
        try:
            for row in rows(model, with_inductor):
                found.append(row)
                print(json.dumps({"model": model, "row": row[0], **row[1]}), file=sys.stderr, flush=True)
        finally:
            print(f"\n| {model} | peak, MB | promised, MB | CPU, ms | bits |\n|---|---|---|---|---|")
            print("\n".join(table(found)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
