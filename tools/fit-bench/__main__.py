"""The scoreboard: systems that make models take less memory, on one machine, by one meter.

    python tools/fit-bench [--task NAME] [--case NAME] [--system NAME] [-o results.json] [--page page.html]

Every option that names something may be repeated. `--from results.json` makes the page of results that are there.
"""

import argparse
import json
import pathlib
import sys

import adapter
import cases
import suite
from page import page


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", action="append", choices=list(cases.TASKS), help="all, unless given")
    parser.add_argument("--case", action="append", choices=sorted({case.name for case in cases.CASES}))
    parser.add_argument("--system", action="append", metavar="NAME", help="a file of `adapters`, without `.py`")
    parser.add_argument("--adapters", action="append", default=[], metavar="DIR", help="a folder of further adapters")
    parser.add_argument("--time-limit", type=float, default=10.0, metavar="SECONDS", help="of a search for one model [10]")
    parser.add_argument("--rounds", type=int, default=10, help="of runs that are measured [10]")
    parser.add_argument("--malloc", choices=["mapped", "stock"], default="mapped", help="the heap of what is measured [mapped]")
    parser.add_argument("-o", "--output", type=pathlib.Path, metavar="RESULTS", help="where to write the results, as JSON")
    parser.add_argument("--page", type=pathlib.Path, help="where to write them as a page")
    parser.add_argument("--from", dest="source", type=pathlib.Path, metavar="RESULTS", help="run nothing: results of earlier")
    asked = parser.parse_args()
    try:
        results = earlier(asked.source) if asked.source else measured(asked)
    except (OSError, RuntimeError, ValueError) as error:
        parser.exit(2, f"{error}\n")
    if asked.output:
        asked.output.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    if asked.page:
        asked.page.write_text(page(results), encoding="utf-8")


def earlier(path):
    """Results of a file.

    Raises:
        ValueError: They are not `fit-bench/1`.
    """
    results = json.loads(path.read_text(encoding="utf-8"))
    if results.get("format") != suite.FORMAT:
        raise ValueError(f"`{path}` is `{results.get('format')}`, not `{suite.FORMAT}`")
    return results


def measured(asked):
    """Runs what is asked for, and prints each row."""
    found = adapter.adapters(asked.adapters)
    if unknown := sorted(set(asked.system or []) - set(found)):
        raise ValueError(f"there is no system `{unknown[0]}`: {', '.join(found)}")
    if not pathlib.Path("/proc/self/clear_refs").exists():
        raise RuntimeError("resident memory is measured on Linux only")
    chosen = [case for case in cases.CASES if asked.task is None or case.task in asked.task]
    chosen = [case for case in chosen if asked.case is None or case.name in asked.case]
    run = suite.Suite(found, asked.adapters, asked.time_limit, asked.rounds, asked.malloc, say)
    systems = [name for name in found if asked.system is None or name in asked.system]
    for name in systems:
        if name in run.skipped:
            print(f"skipped  {name}: {run.skipped[name]}", flush=True)
    return run.results(chosen, systems)


def say(row):
    """One line of a row."""
    size = "" if row["measured_bytes"] is None else f"{row['measured_bytes'] / 1e6:.2f} MB  {row['share']:.0%}"
    time = "" if row["time_ratio"] is None else f"  time {row['time_ratio']:.2f}"
    what = f"{row['task']} / {row['case']} / {row['system']}: {row['setting']}"
    print(f"{row['status']:8} {what}  {size}{time}  {row['reason'] or ''}".rstrip(), flush=True)


if __name__ == "__main__":
    sys.exit(main())
