"""Runs systems on cases, each step in a process of its own, and collects rows."""

import importlib.metadata
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile

import cases

FORMAT = "fit-bench/1"
LONGEST = 900
"""Seconds until a process is ended."""
MAPPED = "glibc.malloc.mmap_threshold=65536"
"""Has `malloc` map large blocks by themselves where memory is measured: what is freed is gone, so that the heap's holes, which
differ from run to run, count for nobody. Whole processes and times are measured without it."""


class Suite:
    """Results of some cases.

    Args:
        adapters: Systems by name, as `adapter.adapters` gives them.
        folders: Folders of further adapters, for the processes.
        time_limit: Seconds that a system that searches may take for one model.
        rounds: Rounds of runs that are measured.
        malloc: `"mapped"` (see `MAPPED`), or `"stock"`.
        say: Called with each row as soon as it is there.
    """

    def __init__(self, adapters, folders=(), time_limit=10.0, rounds=10, malloc="mapped", say=lambda row: None):
        self.skipped = {name: why for name, one in adapters.items() if (why := one.why_not()) is not None}
        self.adapters = adapters
        self.common = {"folders": [str(pathlib.Path(folder).resolve()) for folder in folders], "time_limit": time_limit}
        self.rounds, self.malloc = rounds, malloc
        self.say = say

    def results(self, chosen, systems):
        """Rows of the chosen cases and systems as `fit-bench/1`. The reference of each case is always measured."""
        rows = []
        for case in chosen:
            with tempfile.TemporaryDirectory(prefix="fit-bench-") as folder:
                found = list(_Measured(self, case, pathlib.Path(folder)).rows(systems))
            rows += ranked(found)
        versions = {name: _version(name) for one in self.adapters.values() for name in one.needs}
        return {
            "format": FORMAT,
            "machine": machine(),
            "versions": {"python": platform.python_version()} | {name: one for name, one in sorted(versions.items()) if one},
            "time_limit_seconds": self.common["time_limit"],
            "rounds": self.rounds,
            "malloc": self.malloc,
            "threads": 1,
            "skipped": [{"system": name, "reason": why} for name, why in self.skipped.items() if name in systems],
            "rows": rows,
        }


class _Measured:
    """One case, in a folder of its own."""

    def __init__(self, suite, case, folder):
        self.suite, self.case, self.folder = suite, case, folder
        self.model = cases.write(case, folder) if case.kind == "onnx" else folder
        self.reference = None
        """Row, prepared model, bits and file of outputs of the reference."""

    def rows(self, systems):
        first = cases.REFERENCE.get(self.case.kind)
        key = (self.case.task, self.case.kind)
        asked = [(name, setting) for name in systems for setting in self.suite.adapters[name].asked.get(key, {})]
        if first is not None and asked:
            if (why := self.suite.skipped.get(first[0])) is not None:
                raise RuntimeError(f"{first[0]}, which others are compared with: {why}")
            asked = [first, *(one for one in asked if one != first)]
        for name, setting in asked:
            if name not in self.suite.skipped:
                row = self.row(name, setting)
                self.suite.say(row)
                yield row

    def row(self, system, setting):
        """One row. `status` is `ok`, `wrong` where the answer is another one, or `failed`."""
        row = {
            **{"task": self.case.task, "case": self.case.name, "kind": self.case.kind, "system": system, "setting": setting},
            **{"status": "ok", "reason": None, "rank": None, "predicted_bytes": None, "measured_bytes": None},
            **{"share": None, "time_ratio": None, "prepare_seconds": None},
        }
        work = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        order = {"system": system, "setting": setting, "folder": str(work), "rounds": self.suite.rounds}
        try:
            made = self.ask("prepare", order)
            row["prepare_seconds"] = made["seconds"]
            if self.case.kind == "buffers":
                self.judge(row, made["buffers"], made["offsets"])
            else:
                self.measure(row, order | {"prepared": made["prepared"], "outputs": str(work / "outputs.npz")})
        except RuntimeError as error:
            row |= {"status": "failed", "reason": str(error), "measured_bytes": None, "share": None, "time_ratio": None}
        digits = {"share": 4, "time_ratio": 3, "prepare_seconds": 3}
        return row | {name: round(row[name], figures) for name, figures in digits.items() if row[name] is not None}

    def measure(self, row, order):
        found = self.ask("memory", order)
        row |= {name: found[name] for name in ("measured_bytes", "predicted_bytes")}
        if self.reference is None:
            self.reference = found | order
            row |= {"share": 1.0, "time_ratio": 1.0}
            return
        first = self.reference
        row["share"] = row["measured_bytes"] / first["measured_bytes"]
        if found["bits"] != first["bits"]:
            row |= {"status": "wrong", "reason": difference(first["outputs"], order["outputs"], len(found["bits"]))}
        beside = {"reference": [first["system"], first["setting"]], "reference_prepared": first["prepared"]}
        row |= self.ask("times", order | beside)

    def judge(self, row, buffers, offsets):
        """Offsets, by painting: the height counts, and buffers that meet must lie apart."""
        live = [0] * max(upper for _, upper, _ in buffers)
        for lower, upper, size in buffers:
            for at in range(lower, upper):
                live[at] += size
        row["measured_bytes"] = max(offset + size for offset, (_, _, size) in zip(offsets, buffers, strict=True))
        row["share"] = row["measured_bytes"] / max(live)
        if (fault := fault_of(buffers, offsets)) is not None:
            row |= {"status": "wrong", "reason": fault}

    def ask(self, what, order):
        """What a process answers.

        Raises:
            RuntimeError: It failed, and why.
        """
        case = [self.case.task, self.case.kind, self.case.name]
        order = {"do": what, "case": case, "model": str(self.model), **self.suite.common, **order}
        command = [sys.executable, str(pathlib.Path(__file__).with_name("measure.py")), json.dumps(order)]
        is_mapped = self.suite.malloc == "mapped" and what == "memory" and self.case.task != "whole process"
        env = {**os.environ, "OMP_NUM_THREADS": "1"} | ({"GLIBC_TUNABLES": MAPPED} if is_mapped else {})
        try:
            done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=LONGEST)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"it took more than {LONGEST} s") from None
        if done.returncode != 0:
            raise RuntimeError(f"the process ended with {done.returncode}: {' '.join(done.stderr.split())[-200:]}")
        found = json.loads(done.stdout.splitlines()[-1])
        if "failed" in found:
            raise RuntimeError(found["failed"])
        return found


def difference(expected, found, kinds):
    """What differs between two files of outputs: the largest difference as a share of an output's largest number. Of an output
    whose numbers are below 1e-5 of the largest of all, as a share of that: what is nothing but rounding has no digits to
    agree in."""
    import numpy as np

    if kinds > 1:
        return f"runs differ from each other: {kinds} different outputs"
    with np.load(expected) as ours, np.load(found) as theirs:
        if ours.files != theirs.files:
            return f"{len(theirs.files)} outputs instead of {len(ours.files)}"
        pairs = [(ours[name], theirs[name]) for name in ours.files if ours[name].size]
    largest = [float(np.abs(one).max()) for one, _ in pairs]
    worst = 0.0
    for (one, other), most in zip(pairs, largest, strict=True):
        if one.shape != other.shape or one.dtype != other.dtype:
            return f"an output is {other.dtype} {list(other.shape)} instead of {one.dtype} {list(one.shape)}"
        distance = float(np.abs(one.astype(np.float64) - other.astype(np.float64)).max())
        worst = max(worst, distance / max(most, 1e-5 * max(largest), 1e-30))
    return f"other bits: off by up to {worst:.0e} of an output's largest number"


def fault_of(buffers, offsets):
    """Why offsets are no placement; `None` where they are one."""
    order = sorted(range(len(buffers)), key=lambda at: offsets[at])
    for place, at in enumerate(order):
        lower, upper, size = buffers[at]
        if offsets[at] < 0 or offsets[at] % cases.ALIGNMENT:
            return f"buffer {at} lies at {offsets[at]}, which is no multiple of {cases.ALIGNMENT}"
        for other in order[place + 1 :]:
            if offsets[other] >= offsets[at] + size:
                break
            if buffers[other][0] < upper and lower < buffers[other][1]:
                return f"buffers {at} and {other} overlap"
    return None


def ranked(rows):
    """Rows with ranks, the best first: by measured bytes, among those whose answer is right. Equal bytes have one rank."""
    right = sorted((row for row in rows if row["status"] == "ok"), key=lambda row: row["measured_bytes"])
    sizes = [row["measured_bytes"] for row in right]
    for row in right:
        row["rank"] = 1 + sizes.index(row["measured_bytes"])
    return right + [row for row in rows if row["status"] != "ok"]


def machine():
    """What figures depend on."""
    processor = platform.processor()
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
        processor = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    system = f"{platform.system()} {platform.release()}"
    return {"system": system, "processor": processor, "cores": os.cpu_count(), "memory_bytes": size}


def _version(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
