"""Every block of code in the README and the guides runs, and prints what its page shows."""

import dataclasses
import importlib.util
import os
import sys
import zipfile

import pytest
import wheel
from conftest import built_program
from models import ROOT
from need import require
from snippets import Session, blocks, difference, difference_of_json

PATHS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs").glob("*/*.md"))]
PAGES = {name: blocks(name, path.read_text()) for path in PATHS for name in [path.relative_to(ROOT).as_posix()]}
ALONE = "README.md"
"""Runs in environments that hold what it says is installed, and nothing else."""
BLOCKS = [block for page in PAGES.values() for block in page]


def params(chosen):
    return [pytest.param(block, id=str(block)) for block in chosen]


@pytest.fixture(scope="module")
def variables(tmp_path_factory):
    """The program and the package as users have them, beside what third_party has."""
    folder = tmp_path_factory.mktemp("installed")
    program = built_program()
    if program is None:
        pytest.fail("remat-opt is not built: run `cargo build -p remat-opt` first")
    (folder / "remat-opt").symlink_to(program)
    if wheel.BUILT:
        with zipfile.ZipFile(wheel.BUILT[-1]) as archive:
            archive.extractall(folder / "package")
    programs = [str(folder), os.path.dirname(sys.executable), os.environ["PATH"]]
    found = {"PATH": os.pathsep.join(programs), "PYTHONPATH": str(folder / "package"), "XDG_CACHE_HOME": str(folder / "cache")}
    return {**os.environ, **found, "NO_COLOR": "1"}


def run(page, folder, variables, python=sys.executable):
    """Runs blocks of a page, in a folder that looks like a checkout to them."""
    for shared in ("test", "examples"):
        (folder / shared).symlink_to(ROOT / shared)
    with Session(folder, variables, python) as session:
        for block in page:
            fault = session.fault(block)
            assert fault is None, f"{block}: {fault}"


NAMES = [name for name, page in PAGES.items() if name != ALONE and any(not block.not_run for block in page)]


@pytest.mark.parametrize("name", NAMES)
def test_what_a_page_shows_runs(name, variables, tmp_path):
    page = [block for block in PAGES[name] if not block.not_run and is_there(block.needs)]
    if not wheel.BUILT:
        page = [block for block in page if block.language != "python"]
    run(page, tmp_path, variables)


@pytest.fixture
def alone(tmp_path):
    """A new environment with the wheel and what it depends on."""
    require("wheel", bool(wheel.BUILT), "there is no wheel: `make test-wheel` builds it where maturin can be installed")
    environment = wheel.Environment(tmp_path / "environment")
    path = os.pathsep.join([str(environment.folder), environment.variables["PATH"]])
    environment.variables |= {"PATH": path, "XDG_CACHE_HOME": str(tmp_path / "cache"), "NO_COLOR": "1"}
    return environment


def test_the_readme_gives_a_smaller_model_with_the_wheel_alone(alone, tmp_path):
    page = [block for block in PAGES[ALONE] if not block.needs]
    assert any("remat_opt.optimize" in block.code for block in page)
    run(page, tmp_path, alone.variables, alone.folder / "python")


SMALLER = """
(report,) = backend.reports
assert report.promised_bytes <= 8_000_000 < report.baseline_bytes, report
"""


def test_torch_compile_keeps_a_budget_with_the_wheel_and_torch_alone(alone, tmp_path):
    require("torch", is_there("torch"), "Python has no torch")
    alone.link("torch")
    first = PAGES["docs/guides/pytorch.md"][0]
    assert "torch.compile" in first.code and '"8MB"' in first.code
    page = [first, dataclasses.replace(first, code=SMALLER, shown=None), *(block for block in PAGES[ALONE] if block.needs)]
    run(page, tmp_path, alone.variables, alone.folder / "python")


@pytest.mark.parametrize("block", params(block for block in BLOCKS if block.not_run))
def test_what_does_not_run_says_why(block):
    pytest.skip(block.not_run)


@pytest.mark.parametrize("block", params(block for block in BLOCKS if block.needs))
def test_what_a_block_needs_is_there(block):
    require(block.needs, is_there(block.needs), f"Python has no {block.needs}")


def test_blocks_of_python_have_a_wheel():
    require("wheel", bool(wheel.BUILT), "there is no wheel: `make test-wheel` builds it where maturin can be installed")


def is_there(module):
    if module is None:
        return True
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("peak 16.8 MiB", "peak 16.2 MiB"),
        ("time 4.2 s", "time 90.0 s"),
        ("-63 % of it", "-55 % of it"),
        ("a\n…\nd", "a\nb\nc\nd\n"),
        ("3 runs, … of them", "3 runs, 17 of them"),
        ("How      10 recomputes, no tiles", "How      2 recomputes, no tiles"),
        ("Time +0.1 % measured (+3.7 % estimated)", "Time +3.5 % estimated"),
        ("Time +0.1 % measured (+3.7 % estimated)", "Time +9.1 % measured (+3.7 % estimated), more than the 5 % that are allowed"),
    ],
)
def test_figures_may_differ_within_bounds(shown, printed):
    assert difference(shown, printed) is None


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("peak 16.8 MiB", "peak 26.8 MiB"),
        ("peak 16.8 MiB", "peak 16.8 KiB"),
        ("-63 % of it", "-12 % of it"),
        ("10 recomputes", "12 recomputes"),
        ("How      10 recomputes, no tiles", "How      10 recomputes, 3 fused chains in tiles"),
        ("op `b5`", "op `b6`"),
        ("identical", "different"),
        ("a\n…\nd", "a\nb"),
        ("a", "a\nb"),
        ("a\nb", "a"),
    ],
)
def test_what_differs_is_found(shown, printed):
    assert difference(shown, printed) is not None


def test_what_differs_in_json_is_found():
    assert difference_of_json('{"a": 1, "b": "…"}', '{"b": [2], "a": 1}') is None
    assert difference_of_json('{"a": {"b": 1}}', '{"a": {"b": 2}}') == "not printed as shown: .a.b"
    assert difference_of_json('{"a": 1}', '{"a": 1, "b": 1}') is not None
    assert difference_of_json('{"a": 1, "…": "…"}', '{"a": 1, "b": 1}') is None
    assert difference_of_json('{"a": 1, "…": "…"}', '{"b": 1}') is not None


@pytest.mark.parametrize(
    "code",
    [
        "```sh\nfalse\n```",
        "```sh\nfalse | true\n```",
        "```console\n$ echo a\nb\n```",
        "```python\n1 / 0\n```",
        "<!-- status: 2 -->\n```sh\nfalse\n```",
    ],
)
def test_a_block_that_fails_is_found(code, tmp_path):
    with Session(tmp_path, dict(os.environ)) as session:
        (block,) = blocks("page.md", code)
        assert session.fault(block) is not None


def test_blocks_of_a_page_share_folder_and_names(tmp_path):
    page = "<!-- status: 1 -->\n```sh\necho 5 > a\nfalse\n```\n```python\nnumber = open('a').read()\n```\n```python\nprint(number)\n```\n\n```text\n5\n```\n"
    with Session(tmp_path, dict(os.environ)) as session:
        assert [session.fault(block) for block in blocks("page.md", page)] == [None] * 3


def test_what_a_page_says_of_a_block_is_read():
    page = "<!-- not run: it takes a day -->\n```sh\na\n```\n\n<!-- needs: torch -->\n```python\nb\n```\n\n```sh\nc\n```\nwords\n\n```text\nd\n```\n"
    assert [(block.not_run, block.needs, block.shown) for block in blocks("page.md", page)] == [
        ("it takes a day", None, None),
        (None, "torch", None),
        (None, None, None),
    ]
