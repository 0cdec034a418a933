"""Examples and notebooks, as users have them: with the wheel."""

import json
import shutil
import xml.etree.ElementTree

import models
import pytest
import wheel

pytestmark = wheel.is_there

EXAMPLES = models.ROOT / "examples"
NOTEBOOKS = sorted(path for path in EXAMPLES.glob("*.ipynb") if "remat_opt.torch" not in path.read_text())
"""Those with PyTorch are tested beside it."""

RUN = """
import nbclient, nbformat
book = nbformat.read(sys.argv[1], 4)
nbclient.NotebookClient(book, timeout=300, kernel_name="python3", resources={"metadata": {"path": sys.argv[2]}}).execute()
shown = [sorted(output.get("data", {})) for cell in book.cells for output in cell.get("outputs", [])]
print(json.dumps([shown, sum("text/html" in kinds for kinds in shown)]))
"""


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_what_it_finds(environment, notebook):
    if not wheel.is_pinned("nbclient"):
        pytest.skip("there is no wheel of nbclient for this machine")
    assert not [cell for cell in json.loads(notebook.read_text())["cells"] if cell.get("outputs")], "outputs are not kept"
    _, tables = environment.python(RUN, notebook, EXAMPLES)
    assert tables >= 3


def test_the_example_of_many_models_goes_on_where_it_ended(environment, tmp_path):
    folder = tmp_path / "models" / "below"
    folder.mkdir(parents=True)
    shutil.copy(models.ROOT / "test" / "models" / "mlp_tiny_train.onnx", folder)
    line = [EXAMPLES / "sweep_many.py", tmp_path / "models", tmp_path / "jobs", "--budgets", "80%,1000", "--time-limit", "2"]
    first = environment.run("python", *line)
    assert "below/mlp_tiny_train.onnx 80% done" in first
    assert "no plan can meet the budget" in first
    assert "below/mlp_tiny_train.onnx,1000,," in first.splitlines()
    files = {path: path.stat().st_mtime_ns for path in (tmp_path / "jobs").iterdir()}
    assert len(files) == 2
    assert environment.run("python", *line) == first
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "jobs").iterdir()} == files


def test_the_server_draws_its_memory_beside_stock_settings(environment, tmp_path):
    line = [EXAMPLES / "server.py", models.ROOT / "test" / "models" / "features" / "dynamic_batch.onnx"]
    line += ["--requests", 40, "--largest", 512, "--clients", 3, "--chart", tmp_path / "memory.svg"]
    out = environment.run("python", *line, cwd=tmp_path)
    assert out.startswith("stock ")
    assert "40 runs followed the plan, 0 buffers were unforeseen" in out
    drawn = xml.etree.ElementTree.parse(tmp_path / "memory.svg").getroot()
    lines = [one for one in drawn.iter() if one.tag.endswith("polyline")]
    assert len(lines) == 2
    assert all(len(one.get("points").split()) > 2 for one in lines)
