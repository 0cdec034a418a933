"""What IREE takes of models and of their rewritten forms, as the table of docs/mlir/iree.md.

    third_party/venv/bin/python test/python/iree_peak.py REMAT_OPT MODEL.onnx … [--budgets 90%,80%] [--time 10s]
"""

import argparse
import json
import pathlib
import subprocess
import tempfile

import iree_lab

MB = 1e6


def measure(mlir, feed, expected):
    run = iree_lab.run(mlir, feed, len(expected))
    return run.peak, iree_lab.distance(run.outputs, expected)


def rows(program, model, budgets, limit, folder):
    feed = iree_lab.inputs(model)
    expected = iree_lab.reference(model, feed)
    given = sum(array.nbytes for array in feed.values())
    base = None
    for budget in ["none", *budgets]:
        for barriers in ["none"] if budget == "none" else ["none", "iree"]:
            out = folder / "model.mlir"
            plan = folder / f"{model.stem}.{budget}.json"
            source = ["--plan", plan] if plan.exists() else ["--budget", budget, "--emit-plan", plan]
            command = [program, model, "-o", out, *source, "--time-limit", limit, "--mlir-barriers", barriers]
            done = subprocess.run([*map(str, command), "--format", "json"], capture_output=True, text=True, check=False)
            if done.returncode:
                yield f"| {model.stem} | {budget} | {done.stderr.strip().splitlines()[0]} |"
                break
            report = json.loads(done.stdout)
            peak, error = measure(out, feed, expected)
            base = base or (report["baseline_peak_bytes"], peak - given)
            promised, taken = report["peak_bytes"], peak - given
            cells = [
                model.stem,
                budget,
                barriers,
                str(report["recomputes"]),
                f"{promised / MB:.1f} ({promised / base[0]:.0%})",
                f"{taken / MB:.1f} ({taken / base[1]:.0%})",
                f"{error:.0e}",
            ]
            yield "| " + " | ".join(cells) + " |"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("models", type=pathlib.Path, nargs="+")
    parser.add_argument("--budgets", default="90%,80%,70%,60%")
    parser.add_argument("--time", default="10s")
    args = parser.parse_args()
    print("| model | budget | barriers | recomputes | planned, MB | in IREE, MB | difference |")
    print("|---|---|---|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as folder:
        for model in args.models:
            for row in rows(args.program, model, args.budgets.split(","), args.time, pathlib.Path(folder)):
                print(row, flush=True)


if __name__ == "__main__":
    main()
