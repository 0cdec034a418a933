"""Planners of other projects beside ours, on the same buffers: each placement is one, and how low it is."""

import random
import shutil
import subprocess
import sys

import models
import pytest
from need import require
from planners import executorch_greedy, ggml, iree, ours, rules, tflm
from planners.buffers import Buffer, height, load, of_model, read

PROGRAMS = {
    "by size": (None, rules.by_size),
    "by breadth": (None, rules.by_breadth),
    "executorch": (executorch_greedy.missing(), executorch_greedy.place),
    "iree": (iree.missing(), iree.place),
    "ggml": (ggml.missing(), ggml.place),
    "ours": (ours.missing(), ours.place),
    "ours, passes": (ours.missing(), lambda buffers: ours.place(buffers, effort=0)),
}


def some(seed, count=60):
    chosen = random.Random(seed)
    begins = [chosen.randrange(count) for _ in range(count)]
    return [Buffer(16 * chosen.randint(1, 400), begin, begin + chosen.randint(1, count // 4)) for begin in begins]


INSTANCES = [[Buffer(64, 0, 1)], [Buffer(64, 0, 4), Buffer(64, 4, 5)], *map(some, range(4))]


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_a_planner_says_is_a_placement(name):
    missing, place = PROGRAMS[name]
    require(name.split(",")[0], not missing, missing)
    for buffers in INSTANCES:
        assert load(buffers) <= height(buffers, place(buffers)) <= sum(buffer.size for buffer in buffers)


def test_the_interpreter_of_tensorflow_lite_micro_plans_buffers():
    require("tflm", not tflm.missing(), tflm.missing())
    for buffers in INSTANCES:
        _, all_of_them = tflm.model(buffers)
        assert load(all_of_them) <= tflm.height(buffers) <= sum(buffer.size for buffer in all_of_them)


def test_ours_is_at_the_load_where_others_are_above():
    require("ours", not ours.missing(), ours.missing())
    heights = {name: [] for name, (missing, _) in PROGRAMS.items() if not missing}
    for buffers in INSTANCES:
        for name, found in heights.items():
            found.append(height(buffers, PROGRAMS[name][1](buffers)) / load(buffers))
    assert heights["ours"] == [1.0] * len(INSTANCES), heights
    assert max(heights["by size"]) > 1 and max(heights["by breadth"]) > 1


def test_an_order_of_ours_is_no_worse_than_that_of_a_model_and_its_bound_holds():
    require("ours", not ours.missing(), ours.missing())
    lower = 0
    for path in sorted((models.ROOT / "test" / "models").glob("*.onnx")):
        graph = of_model(path)
        order, peak, bound = ours.order(graph)
        assert bound <= peak == load(graph.ordered(order).buffers) <= load(graph.buffers)
        lower += peak < load(graph.buffers)
    assert lower > 0


def test_the_table_has_a_row_for_each_file_and_model(tmp_path):
    (tmp_path / "some.csv").write_text("id,lower,upper,size\na,0,2,64\nb,1,3,64\n")
    (tmp_path / "models").mkdir()
    shutil.copy(models.ROOT / "test" / "models" / "mlp_tiny_train.onnx", tmp_path / "models")
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- bench: planners -->\nold\n<!-- /bench: planners -->\nafter\n")
    script = models.ROOT / "test" / "python" / "planners" / "table.py"
    line = [sys.executable, script, tmp_path, "--models", tmp_path / "models", "--write", page]
    printed = subprocess.run(line, capture_output=True, text=True, check=True).stdout
    assert page.read_text() == f"before\n<!-- bench: planners -->\n{printed}<!-- /bench: planners -->\nafter\n"
    assert printed.splitlines()[2].startswith("| some | 2 | 0 | 0.0 (")
    assert [buffer.end for buffer in read(tmp_path / "some.csv")] == [2, 3]
