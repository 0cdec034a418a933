"""Code of the documentation: which blocks of a page run, what they show, and how far that may differ.

Blocks of `sh`, `console` and `python` run in the order of their page, in one folder and with one interpreter. A block of
`text` or `json` right after one of them is what it prints. A comment right before a block says otherwise:

    <!-- not run: REASON -->    it does not run
    <!-- needs: MODULE -->      it runs where Python has that module
    <!-- status: NUMBER -->     it ends with that exit status, not with 0

In what is shown, `…` stands for any text, and on a line of its own for any lines. Times may differ by anything, per cents
by 10 points, other figures with a unit or a fraction and numbers of recomputes by 15 %, or by what
`<!-- tolerance: PER CENT -->` says from there on. All else is compared word by word; what tells of progress is left out.
On a busy machine a report has no measured time, or more than is allowed: `+1 % measured (+2 % estimated)` may be
`+2 % estimated`, or end with `, more than the 5 % that are allowed`.
"""

import contextlib
import dataclasses
import io
import json
import math
import os
import re
import subprocess
import sys
import traceback

RUN = ("sh", "console", "python")
SHOWN = ("text", "json")
COMMENT = re.compile(r"<!-- (not run|needs|status|tolerance): (.*) -->")
NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?!\w*`)")
UNIT = re.compile(r" ?(%|(?:[kKMG]i?B|B|ns|us|ms|s|min|x|recomputes?)\b)?")
MEASURED = re.compile(r"\S+ % measured \((.*)\)")
PROGRESS = re.compile(r"\d+ s(, \d+ of \d+ s)?: ")
TIMES = ("ns", "us", "ms", "s", "min", "x")


@dataclasses.dataclass
class Block:
    """A block of code of a page, and what the page says of it."""

    page: str
    line: int
    language: str
    code: str
    shown: str | None = None
    form: str = "text"
    not_run: str | None = None
    needs: str | None = None
    status: str = "0"
    tolerance: float = 15

    def __str__(self):
        return f"{self.page}:{self.line}"


def blocks(page, text):
    """The blocks of a page that are code to run."""
    found, comment, before, fence, tolerance = [], {}, None, None, Block.tolerance
    for number, line in enumerate(text.splitlines(), 1):
        if fence is not None:
            if line.strip() != "```":
                fence[1].append(line)
                continue
            language, code = fence[0], "\n".join(fence[1]) + "\n"
            if language in RUN:
                before = Block(page, number - len(fence[1]), language, code, tolerance=tolerance, **comment)
                found.append(before)
            elif language in SHOWN and before is not None:
                before.shown, before.form, before = code, language, None
            else:
                before = None
            fence, comment = None, {}
        elif line.strip().startswith("```"):
            fence = (line.strip()[3:], [])
        elif said := COMMENT.fullmatch(line.strip()):
            if said[1] == "tolerance":
                tolerance = float(said[2])
            else:
                comment[said[1].replace(" ", "_")] = said[2]
            before = None
        elif line.strip():
            comment, before = {}, None
    return found


class Session:
    """One folder and one interpreter for the blocks of a page."""

    def __init__(self, folder, variables, python=sys.executable):
        self.folder, self.variables, self.python = folder, variables, python
        self.interpreter = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.interpreter is not None:
            self.interpreter.communicate()

    def fault(self, block):
        """What is wrong with a block, or none."""
        if block.language == "console":
            steps = (dataclasses.replace(block, language="sh", code=code, shown=shown) for code, shown in _steps(block.code))
            return next(filter(None, map(self.fault, steps)), None)
        run = self._python if block.language == "python" else self._shell
        status, printed, said = run(block.code)
        if status != block.status:
            return f"ends with status {status}:\n{block.code}\n{printed}{said}"
        if block.shown is None:
            return None
        if block.form == "json":
            differs = difference_of_json(block.shown, printed)
        else:
            differs = difference(block.shown, printed + said, block.tolerance)
        return f"{differs}\nit printed:\n{printed}{said}" if differs else None

    def _shell(self, code):
        line = ["bash", "-euo", "pipefail", "-c", code]
        done = subprocess.run(
            line, cwd=self.folder, env=self.variables, capture_output=True, text=True, timeout=300, check=False
        )
        return str(done.returncode), done.stdout, done.stderr

    def _python(self, code):
        if self.interpreter is None:
            line = [self.python, __file__]
            self.interpreter = subprocess.Popen(line, cwd=self.folder, env=self.variables, text=True, stdin=-1, stdout=-1)
        self.interpreter.stdin.write(json.dumps(code) + "\n")
        self.interpreter.stdin.flush()
        answer = self.interpreter.stdout.readline()
        return json.loads(answer) if answer else ("1", "", "the interpreter ended")


def _steps(code):
    """The commands of a console and what each prints."""
    for step in re.split(r"^\$ ", code, flags=re.M)[1:]:
        command, _, shown = step.partition("\n")
        yield command, shown


def difference(shown, printed, tolerance=Block.tolerance):
    """How a text differs from what a page shows of it, or none."""
    wanted, lines = _lines(shown), _lines(printed)
    at, anywhere = 0, False
    for line in wanted:
        if line in ("…", "..."):
            anywhere = True
            continue
        ahead = range(at, len(lines) if anywhere else min(at + 1, len(lines)))
        forms = {line, MEASURED.sub(r"\1", line), f"{line}, more than the 5 % that are allowed"}
        match = next((here for here in ahead if any(_is_alike(form, lines[here], tolerance) for form in forms)), None)
        if match is None:
            return f"not printed as shown: {line}"
        at, anywhere = match + 1, False
    return None if anywhere or at == len(lines) else f"printed and not shown: {lines[at]}"


def difference_of_json(shown, printed):
    """How JSON differs from what a page shows of it, or none."""

    def differs(wanted, found, where):
        if wanted == "…":
            return None
        if isinstance(wanted, dict) and isinstance(found, dict):
            names = wanted.keys() - {"…"}
            if names == found.keys() or ("…" in wanted and names < found.keys()):
                return next(filter(None, (differs(wanted[name], found[name], f"{where}.{name}") for name in names)), None)
        return None if wanted == found else f"not printed as shown: {where or 'the whole'}"

    return differs(json.loads(shown), json.loads(printed), "")


def _lines(text):
    lines = [" ".join(line.split()) for line in text.splitlines()]
    return [line for line in lines if line and not PROGRESS.match(line)]


def _is_alike(shown, printed, tolerance):
    pattern, figures, at = "", [], 0
    is_how = shown.startswith("How ")
    for number in NUMBER.finditer(shown):
        unit = UNIT.match(shown, number.end())[1]
        if unit or "." in number[0] or is_how:
            pattern += _words(shown[at : number.start()]) + r"([-+]?\d+(?:\.\d+)?)"
            figures.append((float(number[0]), unit))
            at = number.end()
    # What a small model takes in time is noise; how many ops run again is up to what a search finds within its time.
    tolerance = math.inf if is_how or shown.startswith("Time ") else tolerance
    match = re.fullmatch(pattern + _words(shown[at:]), printed)
    return match is not None and all(
        _is_close(figure, float(found), unit, tolerance) for (figure, unit), found in zip(figures, match.groups(), strict=True)
    )


def _words(text):
    return ".*?".join(re.escape(part) for part in text.split("…"))


def _is_close(shown, found, unit, tolerance):
    if unit in TIMES:
        return True
    return abs(found - shown) <= (max(10, tolerance / 2) if unit == "%" else tolerance / 100 * abs(shown))


def _serve():
    """Runs the code that comes in, line by line, and answers with what it printed."""
    # What libraries print on their own is no answer.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    names = {"__name__": "snippet"}
    for line in sys.stdin:
        printed = io.StringIO()
        try:
            with contextlib.redirect_stdout(printed):
                exec(json.loads(line), names)  # noqa: S102
            answer = "0", printed.getvalue(), ""
        except Exception:
            answer = "1", printed.getvalue(), traceback.format_exc()
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    _serve()
