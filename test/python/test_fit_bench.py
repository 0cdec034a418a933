"""The scoreboard: what it measures, ranks and refuses, and that a system is one file."""

import inspect
import json
import os
import random
import re
import subprocess
import sys
import zipfile

import models
import pytest
import wheel

FOLDER = models.ROOT / "tools" / "fit-bench"
sys.path.insert(0, str(FOLDER))
import adapter  # noqa: E402
import cases  # noqa: E402
import page  # noqa: E402
import suite  # noqa: E402

METHODS = {"onnx": "session", "torch": "step", "buffers": "place"}
FIELDS = {"task", "case", "kind", "system", "setting", "status", "reason", "rank", "predicted_bytes", "measured_bytes"}
FIELDS |= {"share", "time_ratio", "prepare_seconds"}
HUNGER = 64_000_000

OTHER = f'''
"""A system in one file."""
from adapter import Adapter, in_onnxruntime

class Other(Adapter):
    needs = ("numpy",)
    asked = {{("order + recompute", "onnx"): {{name: {{"does": name}} for name in ("same", "hungry", "wrong", "random", "raises")}}}}

    def session(self, prepared, options):
        import numpy
        stock = in_onnxruntime(prepared["model"])
        if options["does"] == "raises":
            raise ValueError("no <b>memory</b>")
        calls = []
        def run(feed):
            outputs = stock(feed)
            calls.append(numpy.ones({HUNGER}, numpy.uint8).sum() if options["does"] == "hungry" else 0)
            if options["does"] == "wrong" or (options["does"] == "random" and len(calls) == 2):
                outputs[0] = outputs[0] * numpy.float32(1.0001)
            return outputs
        return run
'''
ABSENT = '''
"""A system that nobody has."""
from adapter import Adapter

class Absent(Adapter):
    needs = ("a-package-that-nobody-has",)
    asked = {("order + recompute", "onnx"): {"default": {}}}
'''


def run(*arguments, status=0, **variables):
    line = [sys.executable, str(FOLDER), *map(str, arguments)]
    done = subprocess.run(line, env=os.environ | variables, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    return done


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """The smallest model by all systems that are here, and two of a folder of ours: results and page."""
    folder = tmp_path_factory.mktemp("fit-bench")
    (folder / "other.py").write_text(OTHER)
    (folder / "absent.py").write_text(ABSENT)
    if wheel.BUILT:
        with zipfile.ZipFile(wheel.BUILT[-1]) as archive:
            archive.extractall(folder / "package")
    which = ["--task", "order + recompute", "--case", "unet_tiny_train", "--adapters", folder, "--rounds", 2, "--time-limit", 1]
    package = {"PYTHONPATH": str(folder / "package"), "VIRTUAL_ENV": sys.prefix}
    run(*which, "-o", folder / "results.json", "--page", folder / "page.html", **package)
    return json.loads((folder / "results.json").read_text()), (folder / "page.html").read_text()


@pytest.fixture
def rows(found):
    return {(row["system"], row["setting"]): row for row in found[0]["rows"]}


def check(results):
    """Results keep the format."""
    assert results["format"] == "fit-bench/1"
    assert {"system", "processor", "cores", "memory_bytes"} == set(results["machine"])
    assert results["versions"]["onnxruntime"]
    for row in results["rows"]:
        assert set(row) == FIELDS
        assert row["task"] in cases.TASKS and row["kind"] in cases.KINDS
        assert (row["rank"] is not None) == (row["status"] == "ok")
        assert (row["reason"] is None) == (row["status"] == "ok")
        assert row["status"] in ("ok", "wrong", "failed")
        assert (row["measured_bytes"] is None) == (row["status"] == "failed")
    for case in {(row["task"], row["kind"], row["case"]) for row in results["rows"]}:
        same = [row for row in results["rows"] if (row["task"], row["kind"], row["case"]) == case and row["rank"]]
        assert [row["measured_bytes"] for row in same] == sorted(row["measured_bytes"] for row in same)
        if case[1] != "buffers":
            assert cases.REFERENCE[case[1]] in [(row["system"], row["setting"]) for row in same]


def test_the_smallest_model_gives_results_and_a_page(found, rows):
    results, text = found
    check(results)
    first = rows["onnxruntime", "default"]
    assert first["share"] == 1.0 and first["measured_bytes"] > 10_000_000
    assert text.count("<svg") == text.count("<table") == text.count("<h2>order + recompute</h2>") == 1
    assert all(row["setting"] in text for row in results["rows"])
    assert not re.search(r"<script|src=|href=|url\(", text)


def test_remat_opt_keeps_what_it_promises_here(rows):
    if not wheel.BUILT:
        pytest.skip("there is no wheel: `make test-wheel` builds it where maturin can be installed")
    row = rows["remat_opt", "min"]
    assert row["status"] == "ok" and row["share"] < 1
    assert row["measured_bytes"] <= 1.05 * row["predicted_bytes"] + 500_000


def test_a_system_is_one_file(rows):
    same, first = rows["other", "same"], rows["onnxruntime", "default"]
    assert same["status"] == "ok" and same["rank"] is not None
    assert abs(same["measured_bytes"] - first["measured_bytes"]) < 1_000_000


def test_the_meter_sees_what_a_system_takes_beside_the_runtime(rows):
    more = rows["other", "hungry"]["measured_bytes"] - rows["other", "same"]["measured_bytes"]
    assert abs(more - HUNGER) < 0.03 * HUNGER


def test_another_answer_is_shown_and_has_no_rank(found, rows):
    wrong = rows["other", "wrong"]
    assert (wrong["status"], wrong["rank"]) == ("wrong", None)
    assert wrong["reason"].startswith("other bits: off by up to 1e-04") and wrong["measured_bytes"]
    assert rows["other", "random"]["reason"] == "runs differ from each other: 2 different outputs"
    assert "other bits: off by up to 1e-04" in found[1]


def test_a_failure_is_a_row_with_its_reason_escaped(found, rows):
    assert (rows["other", "raises"]["status"], rows["other", "raises"]["rank"]) == ("failed", None)
    assert "ValueError: no &lt;b&gt;memory&lt;/b&gt;" in found[1]


def test_a_system_that_is_not_here_is_listed_with_the_reason(found):
    reasons = {one["system"]: one["reason"] for one in found[0]["skipped"]}
    assert reasons["absent"] == "a-package-that-nobody-has is not installed"
    assert reasons["absent"] in found[1]
    assert not any(row["system"] in reasons for row in found[0]["rows"])


@pytest.mark.parametrize("name", sorted(adapter.adapters()))
def test_every_adapter_keeps_the_interface(name):
    one = adapter.adapters()[name]
    kind = type(one)
    assert one.asked and isinstance(one.needs, tuple)
    assert one.why_not() is None or isinstance(one.why_not(), str)
    for (_, kind_of_task), settings in one.asked.items():
        assert settings and json.loads(json.dumps(settings)) == settings
        own = [method for method in (METHODS[kind_of_task], "prepare") if method in vars(kind)]
        assert own, f"{name} does nothing for {kind_of_task}"
    for method in (*METHODS.values(), "prepare", "predicted_bytes"):
        ours, base = (inspect.signature(getattr(owner, method)).parameters for owner in (kind, adapter.Adapter))
        assert list(ours) == list(base)


def test_files_that_are_no_adapters_are_refused(tmp_path):
    (tmp_path / "two.py").write_text(ABSENT + "class Second(Adapter):\n    pass\n")
    assert "has 2 classes" in run("--adapters", tmp_path, status=2).stderr
    (tmp_path / "two.py").write_text(ABSENT.replace("order + recompute", "sleep"))
    assert "`sleep` of `onnx`, which does not exist" in run("--adapters", tmp_path, status=2).stderr
    assert "there is no system `nobody`" in run("--system", "nobody", status=2).stderr


def test_every_case_can_be_built():
    assert {case.task for case in cases.CASES} == set(cases.TASKS)
    for case in cases.CASES:
        if case.kind != "torch":
            assert cases.network(case.name).name == case.name
    found = cases.buffers(next(case for case in cases.CASES if case.kind == "buffers"))
    assert len(found) > 50 and all(lower < upper and size > 0 for lower, upper, size in found)


def placements():
    for name in ("first_fit", "minimalloc"):
        one = adapter.adapters()[name]
        for setting, options in one.asked["+ offsets", "buffers"].items():
            yield pytest.param(one, options, id=f"{name}-{setting}")


@pytest.mark.parametrize(("one", "options"), placements())
def test_planners_of_ours_place_random_buffers_apart(one, options):
    draw = random.Random(0)
    for _ in range(50):
        times = [sorted(draw.sample(range(20), 2)) for _ in range(draw.randint(1, 30))]
        buffers = [(lower, upper, draw.randint(1, 300)) for lower, upper in times]
        assert suite.fault_of(buffers, one.place(buffers, options)) is None


def test_offsets_that_overlap_or_are_not_aligned_are_wrong():
    buffers = [(0, 2, 100), (1, 3, 64), (2, 4, 100)]
    assert suite.fault_of(buffers, [0, 128, 0]) is None
    assert suite.fault_of(buffers, [0, 64, 0]) == "buffers 0 and 1 overlap"
    assert suite.fault_of(buffers, [0, 100, 0]) == "buffer 1 lies at 100, which is no multiple of 64"
    assert "no multiple" in suite.fault_of(buffers, [-64, 128, 0])


def test_the_results_that_are_checked_in_keep_the_format(tmp_path):
    path = FOLDER / "results.json"
    results = json.loads(path.read_text())
    check(results)
    assert {row["task"] for row in results["rows"]} == set(cases.TASKS)
    known = {(case.task, case.kind, case.name) for case in cases.CASES}
    assert {(row["task"], row["kind"], row["case"]) for row in results["rows"]} == known
    run("--from", path, "--page", tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == page.page(results)


def test_results_of_another_version_are_refused(tmp_path):
    (tmp_path / "old.json").write_text('{"format": "fit-bench/0"}')
    assert "is `fit-bench/0`, not `fit-bench/1`" in run("--from", tmp_path / "old.json", status=2).stderr
