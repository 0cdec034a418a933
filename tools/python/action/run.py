"""The step of the action: rewrites a model or checks models, and says in the summary of the run what comes of it."""

import json
import os
import pathlib
import secrets
import shlex
import subprocess
import sys

import remat_opt

CHECKS = {"LIMIT": "--limit", "BASELINE": "--baseline", "MAX_GROWTH": "--max-growth"}
"""Inputs of a check, and their options."""


def main():
    environment = os.environ
    given = [name for name in CHECKS if environment[name]]
    inputs = ", ".join(f"`{name.lower().replace('_', '-')}`" for name in given)
    if environment["OUTPUT"] and given:
        return fail(f"`output` rewrites a model, {inputs} is for checks: a step does one of them", 2)
    if not environment["OUTPUT"] and environment["BUDGET"]:
        return fail("`budget` is about a rewritten model, and `output` does not say where it goes", 2)
    return rewrite(environment) if environment["OUTPUT"] else check(environment, given)


def rewrite(environment):
    """Rewrites a model."""
    model, output = environment["MODEL"].strip(), pathlib.Path(environment["OUTPUT"])
    page, report = output.with_suffix(".html"), output.with_suffix(".json")
    budget = environment["BUDGET"] or "auto"
    line = [model, "-o", output, f"--budget={budget}", f"--report={page}"]
    printed, status = run([*line, *arguments(environment), "--format", "json"])
    document = json.loads(printed or "{}")
    if "summary" in document:
        summarize(environment, f"### remat-opt\n\n{remat_opt.Report(document)._repr_html_()}\n")
    if status != 0:
        return fail(document.get("error", {}).get("message"), status)
    report.write_text(printed, encoding="utf-8")
    written = output if document.get("is_written", True) else model
    memory = document["memory"]
    peak = memory.get("buffers", memory)["after_bytes"]
    answer(environment, {"model": written, "report": report, "page": page, "peak-bytes": peak})
    return 0


def check(environment, given):
    """Checks models."""
    models = [line.strip() for line in environment["MODEL"].splitlines() if line.strip()]
    report = pathlib.Path(environment["RUNNER_TEMP"]) / "remat-opt-check.json"
    report.unlink(missing_ok=True)
    limits = [f"{CHECKS[name]}={environment[name]}" for name in given]
    line = ["check", *limits, "-o", report, *arguments(environment), "--format", "markdown"]
    comment, status = run([*line, "--", *models])
    if not report.exists():
        return fail(None, status)
    summarize(environment, comment)
    document = json.loads(report.read_text(encoding="utf-8"))
    taken = [model.get("measured_bytes", model["predicted_bytes"]) for model in document["models"]]
    answer(environment, {"model": models[0], "report": report, "comment": comment, "peak-bytes": max(taken)})
    return 0 if status == 0 else fail(document.get("error", {}).get("message"), status)


def arguments(environment):
    """Further options, as a shell reads them."""
    return shlex.split(environment["ARGUMENTS"])


def run(line):
    """What the program prints, and its exit status; what it says goes to the log."""
    line = [sys.executable, "-m", "remat_opt", *line]
    done = subprocess.run(line, stdout=subprocess.PIPE, text=True, encoding="utf-8", check=False)
    return done.stdout, done.returncode


def summarize(environment, text):
    """Adds to the summary of the run."""
    with open(environment["GITHUB_STEP_SUMMARY"], "a", encoding="utf-8") as file:
        file.write(text)


def answer(environment, outputs):
    """States outputs of the step. No value can hold the line that ends it."""
    end = secrets.token_hex()
    with open(environment["GITHUB_OUTPUT"], "a", encoding="utf-8") as file:
        file.writelines(f"{name}<<{end}\n{value}\n{end}\n" for name, value in outputs.items())


def fail(error, status):
    """States why the step fails, and gives its exit status."""
    message = error or f"exit status {status}: the log says why"
    # What a message of a step may not hold as it is.
    message = message.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    print(f"::error title=remat-opt::{message}")
    return status


if __name__ == "__main__":
    sys.exit(main())
