"""The command `remat-opt fit`."""

from __future__ import annotations

import argparse
import json
import pathlib
import sys
from collections.abc import Sequence

from ...errors import RematError, UsageError
from .budgets import BUDGETS
from .fit import Fit, Wanted, fit_entry, fit_script
from .snapshot import SETTINGS, Replay, replay

_STATUS = {"finding": 1, "limit": 4, "internal": 3}
_EPILOG = """\
The script runs on this machine, up to the third step of its optimizer. It finds a CUDA device, whose tensors have no numbers,
so nothing is computed and little memory is taken; models that are built on the CPU, and data, are real.

Exit status: 0 it fits, 1 it does not, 2 wrong usage, or no step that can be estimated.
"""


def main(words: Sequence[str]) -> int:
    """Runs the command, and gives its exit status.

    Args:
        words: Those after `fit`.
    """
    own, arguments = _split(words)
    parser = _parser()
    given = parser.parse_args(own)
    try:
        return _run(given, arguments)
    except RematError as error:
        return _fail(error, given.format)


def _run(given: argparse.Namespace, arguments: Sequence[str]) -> int:
    sources = [one for one in (given.script, given.entry, given.snapshot) if one is not None]
    if len(sources) != 1:
        raise UsageError("give one of a script, `--entry FILE:FUNCTION` and `--snapshot FILE`")
    if given.snapshot is not None:
        if given.page is not None:
            raise UsageError("`--page` is for scripts, not for snapshots")
        tried = [given.settings] if given.settings is not None else SETTINGS
        return _say(replay(given.snapshot, tried, memory=given.memory), given.format)
    names = [one.strip() for one in given.budgets.split(",") if one.strip() not in ("", "none")]
    wanted = Wanted(given.settings or "", names, given.largest_batch, given.time_limit)
    if given.entry is not None:
        found = fit_entry(given.entry, given.device, given.precision, wanted)
    else:
        if given.precision is not None:
            raise UsageError("`--precision` is for `--entry`: a script has its own `torch.autocast`")
        if not pathlib.Path(given.script).is_file():
            raise UsageError(f"`{given.script}` is no file")
        found = fit_script(given.script, arguments, given.device, wanted)
    if given.page is not None:
        try:
            pathlib.Path(given.page).write_text(found.to_html(), encoding="utf-8")
        except OSError as error:
            raise UsageError(f"`{given.page}` cannot be written: {error.strerror}") from error
    return _say(found, given.format) or (0 if found.step.fits else 1)


def _say(found: Fit | Replay, form: str) -> int:
    print(found.to_json() if form == "json" else found)
    return 0


def _fail(error: RematError, form: str) -> int:
    if form == "json":
        fields = {"message": str(error.args[0]), "kind": error.kind, "node": error.op, "help": error.help, "details": None}
        print(json.dumps({"format": "remat-error/1", "error": fields, "warnings": []}, indent=2))
    else:
        print(f"error: {error}", file=sys.stderr)
    return _STATUS.get(error.kind, 2)


def _split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Words of the command, and those of the script, which stand after `--`."""
    place = list(words).index("--") if "--" in words else len(words)
    return list(words[:place]), list(words[place + 1 :])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="remat-opt fit",
        usage="%(prog)s [OPTIONS] SCRIPT [-- ARGUMENTS] | --entry FILE:FUNCTION | --snapshot FILE",
        description="Tells whether a training step of PyTorch fits a GPU, from a machine without one.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("script", nargs="?", metavar="SCRIPT", help="a training script; its own arguments stand after `--`")
    add("--entry", metavar="FILE:FUNCTION", help="a function that returns (model, inputs[, optimizer[, loss]]) instead")
    add("--snapshot", metavar="FILE", help="what torch.cuda.memory._dump_snapshot wrote: what other settings would reserve")
    add("--device", default="h100", metavar="NAME", help="h200, h100, a100, ..., or `cuda 24GiB` [default: h100]")
    add("--precision", choices=("bf16", "fp16"), help="autocast, for --entry")
    add("--settings", metavar="CONF", help="of the allocator, as in PYTORCH_CUDA_ALLOC_CONF")
    add("--memory", metavar="BYTES", help="what the process may reserve, for --snapshot")
    budgets = ",".join(BUDGETS)
    add("--budgets", default=budgets, metavar="LIST", help=f"what less memory costs in time; `none`: leave it out [default: {budgets.replace('%', '%%')}]")
    add("--largest-batch", action="store_true", help="look for the largest batch that fits")
    add("--time-limit", type=float, default=10.0, metavar="SECONDS", help="for the search of all plans [default: 10]")
    add("--page", metavar="FILE", help="write a page for a browser here")
    add("--format", choices=("text", "json"), default="text", help="of the report [default: text]")
    return parser
