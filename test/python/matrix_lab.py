"""Rewrites the models of the matrix and measures them, several at a time and each once."""

import concurrent.futures
import dataclasses
import json

import heap
import pytest
from models import Facts, generate
from runtime import LEVELS, Settings

EFFORT = ["--no-arena-plan", "--step-limit", "1000", "--threads", "1", "--time-limit", "10m"]
"""The same work on every machine, whatever else runs there."""


@dataclasses.dataclass(frozen=True)
class Rewritten:
    """What came of a model."""

    report: dict
    original: dict
    measured: dict
    """Both by `Settings`: peak and bits, or the error that the runtime gave."""
    measured_in_growing_heap: dict
    """The same where the C library puts the arena's regions elsewhere, for settings with an arena that have a promise."""


class Lab:
    """Runs ahead of the tests: what is prepared is on its way, and asking for it waits until it is there."""

    def __init__(self, remat_opt, folder, workers):
        self.remat_opt = remat_opt
        self.folder = folder
        self.executor = concurrent.futures.ThreadPoolExecutor(workers)
        self.originals = {}
        self.rewritten = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.executor.shutdown(cancel_futures=True)

    def prepare(self, pairs):
        """Starts on pairs of a model and a variant."""
        generate(self.folder, [case.name for case, _ in pairs])
        for case, variant in pairs:
            if case not in self.originals:
                self.originals[case] = self.executor.submit(self.measure_original, case)
            self.rewritten[case, variant] = self.executor.submit(self.rewrite, case, variant)

    def result(self, case, variant):
        """Raises what went wrong on the way."""
        report, measured, elsewhere = self.rewritten[case, variant].result()
        return Rewritten(report, self.originals[case].result(), measured, elsewhere)

    def path(self, case):
        return case.path or self.folder / f"{case.name}.onnx"

    def measure_original(self, case):
        path = self.path(case)
        settings = [Settings(level, arena=False) for level in LEVELS]
        results = heap.measure_each(path, settings, Facts(path).dims, runs=0)
        return dict(zip(settings, results, strict=True))

    def rewrite(self, case, variant):
        path = self.path(case)
        out = self.folder / f"{case.name}.{variant.name}.out.onnx"
        facts = Facts(path)
        limits = ["--budget", case.budget, *EFFORT, "--format", "json"]
        run = self.remat_opt(path, "-o", out, *limits, *variant.arguments, *facts.arguments)
        if not run.stdout:
            pytest.fail(f"{' '.join(run.args[1:])}\n{run.stderr}", pytrace=False)
        report = json.loads(run.stdout)
        if "is_written" not in report:
            pytest.fail(f"{' '.join(run.args[1:])}\n{report}", pytrace=False)
        # Where no file takes less there is none: then the original model is what is used.
        out = out if report["is_written"] else path
        # A memory pattern works from the second run on.
        promised = dict.fromkeys(promise.settings for promise in variant.promises)
        others = [settings for settings in variant.settings if settings not in promised]
        measured = {}
        for settings, runs in ((promised, 1), (others, 0)):
            measured |= zip(settings, heap.measure_each(out, settings, facts.dims, runs), strict=True)
        arena = [settings for settings in promised if settings.arena]
        elsewhere = heap.measure_each(out, arena, facts.dims, 1, heap.GROWING_HEAP) if arena else []
        return report, measured, dict(zip(arena, elsewhere, strict=True))
