"""The step of the action: rewrites a model, and says in the summary of the run what that gains."""

import json
import os
import pathlib
import shlex
import subprocess
import sys

import remat_opt


def main():
    environment = os.environ
    model, output = environment["MODEL"], pathlib.Path(environment["OUTPUT"])
    page, report = output.with_suffix(".html"), output.with_suffix(".json")
    line = [sys.executable, "-m", "remat_opt", model, "-o", output, f"--budget={environment['BUDGET']}", f"--report={page}"]
    done = subprocess.run(
        [*line, *shlex.split(environment["ARGUMENTS"]), "--format", "json"], stdout=subprocess.PIPE, text=True, check=False
    )
    document = json.loads(done.stdout or "{}")
    if "summary" in document:
        with open(environment["GITHUB_STEP_SUMMARY"], "a", encoding="utf-8") as file:
            file.write(f"### remat-opt\n\n{remat_opt.Report(document)._repr_html_()}\n")
    if done.returncode != 0:
        error = document.get("error", {}).get("message", f"exit status {done.returncode}")
        # What a message of a step may not hold as it is.
        message = error.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
        print(f"::error title=remat-opt::{message}")
        return done.returncode
    report.write_text(done.stdout, encoding="utf-8")
    written = output if document.get("is_written", True) else model
    memory = document["memory"]
    peak = memory.get("buffers", memory)["after_bytes"]
    outputs = {"model": written, "report": report, "page": page, "peak-bytes": peak}
    with open(environment["GITHUB_OUTPUT"], "a", encoding="utf-8") as file:
        file.writelines(f"{name}={value}\n" for name, value in outputs.items())
    return 0


if __name__ == "__main__":
    sys.exit(main())
