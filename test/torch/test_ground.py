"""What runs before the first graph of a step counts, in a process whose heap is counted."""

import json
import subprocess
import sys

import pytest
import remat_opt.torch
import torch
from remat_opt.torch._peak import Lead
from remat_opt.torch._steps import RETAINED

MIB = 1 << 20
STEPS = """
import json
import torch
from remat_opt.torch._peak import Ground

def block(size):
    return bytearray(size << 20)

ground, kept, found = Ground(), [], []
ground.end_of_step()
found.append(ground.first_graph(0))  # Nothing is known of what was there.
ground.end_of_step()
first = block(8)
del first  # Of the step before.
kept.append(block(1))
passing = block(2)
del passing
found.append(ground.first_graph(0))
ground.end_of_step()  # A backward within the step.
kept.append(block(1))
found.append(ground.first_graph(0))
gradient = block(4)
ground.end_of_step()
found.append(ground.first_graph(4 << 20))
ground.end_of_step()
other = block(8)
del other  # A step of another model.
torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], 0.1).step()
kept.append(block(1))
found.append(ground.first_graph(4 << 20))
print(json.dumps(found))
"""


def script(tmp_path, text):
    path = tmp_path / "script.py"
    path.write_text(text)
    return [sys.executable, "-m", "remat_opt.torch", str(path)]


def test_a_step_begins_where_the_heap_is_least(tmp_path):
    run = subprocess.run(script(tmp_path, STEPS), capture_output=True, text=True, check=True)
    unknown, *found = json.loads(run.stdout)
    # Left and at most: above the least; with what an earlier backward of the step found there; without its gradients; and
    # after an update.
    assert unknown is None
    assert [[round(one / MIB) for one in lead] for lead in found] == [[1, 3], [2, 2], [2, 2], [1, 1]]


def test_what_ran_once_is_no_part_of_a_step_nor_what_counts_elsewhere():
    assert Lead(5, 9).least(Lead(6, 7)) == Lead(5, 7)
    assert Lead(5, 9).without(6) == Lead(0, 3)


def test_a_script_gets_its_arguments_and_gives_its_status(tmp_path):
    line = script(tmp_path, "import sys; print(sys.argv[1:]); sys.exit(3)")
    run = subprocess.run([*line, "a", "--b"], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (3, "['a', '--b']\n")


def test_without_a_script_its_usage_is_shown():
    run = subprocess.run([sys.executable, "-m", "remat_opt.torch"], capture_output=True, text=True, check=False)
    assert run.returncode == 2 and run.stderr.startswith("usage: ")


def test_nothing_is_promised_for_a_graph_that_is_kept_for_another_backward(monkeypatch):
    monkeypatch.setattr("torch._functorch.config.donated_buffer", False)
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.Linear(64, 8))
    backend = remat_opt.torch.backend("80%", "aot_eager", step_limit=500, threads=1)
    run = torch.compile(model, backend=backend)
    for _ in range(2):
        run(torch.randn(64, 32)).sum().backward()
    (report,) = backend.reports
    assert report.promised_bytes is not None
    loss = run(torch.randn(64, 32)).sum()
    loss.backward(retain_graph=True)
    loss.backward()
    assert report.promised_bytes is None
    assert RETAINED in report.notes


@pytest.mark.parametrize("is_counted", [False, True])
def test_the_report_of_a_cut_model_says_what_does_not_count(tmp_path, is_counted):
    line = script(
        tmp_path,
        """
import remat_opt.torch, torch

class Cut(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(16, 16) for _ in range(2))

    def forward(self, x):
        x = self.layers[0](x)
        torch._dynamo.graph_break()
        return self.layers[1](x)

backend = remat_opt.torch.backend("80%", "aot_eager", step_limit=100, threads=1)
torch.compile(Cut(), backend=backend)(torch.randn(8, 16)).sum().backward()
print(any("before the first graph not at all" in note for one in backend.reports for note in one.notes))
""",
    )
    line = line if is_counted else [line[0], line[-1]]
    run = subprocess.run(line, capture_output=True, text=True, check=True)
    assert run.stdout == f"{not is_counted}\n"
