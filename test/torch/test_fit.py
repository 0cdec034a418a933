"""Training scripts for a GPU that is not here: what their steps take, what less memory costs, and what goes wrong."""

import json
import os
import re
import subprocess
import sys

import browser
import models
import pytest
import torch
from remat_opt import ModelError, UsageError
from remat_opt.torch import estimate, fit_entry, fit_script
from remat_opt.torch._gpu import command
from remat_opt.torch._gpu.budgets import budgets
from remat_opt.torch._gpu.devices import device, smallest
from remat_opt.torch._gpu.fit import Wanted

STEP_ONLY = Wanted(budgets=())

TRAIN = """
import argparse
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--width", type=int, default=64)
parser.add_argument("--amp", action="store_true")
args = parser.parse_args()
assert torch.cuda.is_available() and torch.cuda.device_count() == 1
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.cuda.manual_seed(0)
model = nn.Sequential(nn.Conv2d(3, args.width, 3, padding=1), nn.BatchNorm2d(args.width), nn.ReLU(), nn.Flatten(), nn.Linear(args.width * 1024, 10))
optimizer = torch.optim.AdamW(model.parameters())
model = torch.compile(model.to(device))
scaler = torch.amp.GradScaler("cuda", enabled=args.amp)
criterion = nn.CrossEntropyLoss()
loader = DataLoader(TensorDataset(torch.randn(64, 3, 32, 32), torch.randint(0, 10, (64,))), batch_size=16, shuffle=True, pin_memory=True)
steps = 0
for epoch in range(1000):
    for images, labels in loader:
        images, labels = images.to(device, non_blocking=True), labels.cuda()
        assert images.is_cuda and images.device == torch.device("cuda:0")
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=args.amp):
            output = model(images)
            loss = criterion(output, labels)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        torch.cuda.synchronize()
        steps += 1
        assert steps < 4
        print("loss", loss.item())
"""


@pytest.fixture
def script(tmp_path):
    def write(text, name="train.py"):
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return write


def same_step(width):
    """The step of the script, given to `estimate`."""
    network = torch.nn.Sequential(
        torch.nn.Conv2d(3, width, 3, padding=1),
        torch.nn.BatchNorm2d(width),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(width * 1024, 10),
    )

    class Step(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.network = network

        def forward(self, images, labels):
            return torch.nn.functional.cross_entropy(self.network(images), labels)

    return Step(), [torch.empty(16, 3, 32, 32), torch.zeros(16, dtype=torch.long)]


@pytest.mark.parametrize("arguments", [[], ["--width", "32"], ["--amp"]])
def test_a_script_takes_what_its_step_takes(script, arguments):
    found = fit_script(script(TRAIN), arguments, "h200", STEP_ONLY)
    module, inputs = same_step(32 if arguments[:1] == ["--width"] else 64)
    known = estimate(module, inputs, "h200", torch.optim.AdamW, precision="bf16" if "--amp" in arguments else None)
    # The script clips gradients and holds the result of the model besides.
    assert found.step.allocated_bytes == pytest.approx(known.allocated_bytes, rel=0.02)
    assert found.step.reserved_bytes == pytest.approx(known.reserved_bytes, rel=0.1)
    for kind in ("parameters", "gradients", "optimizer"):
        assert abs(found.step.kinds.get(kind, 0) - known.kinds.get(kind, 0)) <= 8192, kind
    assert found.step.phase == known.phase and found.step.op == known.op
    path, _, line = found.step.line.rpartition(":")
    assert path.endswith("train.py") and "model(images)" in TRAIN.splitlines()[int(line) - 1]
    assert len(found.notes) == 1 and "0 was taken for numbers" in found.notes[0]


def test_nothing_of_this_process_is_changed(script):
    before = torch.cuda.is_available(), torch.compile, torch.nn.Module.__call__, torch.load, sys.argv[:], torch.get_default_device()
    swaps = torch.__future__.get_swap_module_params_on_conversion()
    text = "import torch\ntorch.set_default_device('cuda')\nmodel = torch.nn.Linear(2, 2)\nassert model.weight.is_cuda\nmodel(torch.ones(1, 2)).sum().backward()"
    assert fit_script(script(text), [], "h200", STEP_ONLY).notes == ["no optimizer was seen: gradients stay"]
    after = torch.cuda.is_available(), torch.compile, torch.nn.Module.__call__, torch.load, sys.argv[:], torch.get_default_device()
    assert before == after and torch.__future__.get_swap_module_params_on_conversion() == swaps
    assert torch.nn.Linear(2, 2)(torch.ones(1, 2)).device.type == "cpu"


CHECKPOINTS = """
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(100, 64)
        self.blocks = nn.ModuleList(nn.TransformerEncoderLayer(64, 4, 256, batch_first=True) for _ in range(4))
        self.head = nn.Linear(64, 100)

    def forward(self, ids):
        x = self.embed(ids)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if KEEP == 0 else block(x)
        return {"logits": self.head(x)}

with torch.device("cuda"):
    net = Net()
optimizer = torch.optim.AdamW(net.parameters(), fused=True)
while True:
    for micro in range(2):
        ids = torch.randint(0, 100, (8, 512), device="cuda")
        with torch.autocast("cuda", torch.bfloat16):
            logits = net(ids)["logits"]
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), ids.flatten()) / 2
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def test_checkpoints_and_accumulated_gradients_are_followed(script):
    kept, dropped = (fit_script(script(f"KEEP = {keep}\n{CHECKPOINTS}"), [], "h100", STEP_ONLY).step for keep in (1, 0))
    without = [one.allocated_bytes - one.kinds["workspace"] for one in (dropped, kept)]
    assert without[0] < 0.5 * without[1]
    assert dropped.kinds["parameters"] == kept.kinds["parameters"]
    # Attention is the fused kernel within a layer of PyTorch, too: it keeps no scores.
    assert kept.kinds["activations"] < 4 * 8 * 4 * 512 * 512 * 2 + kept.kinds["parameters"] * 40


def test_a_model_its_loss_and_its_optimizer_are_found_in_a_script(script):
    found = fit_script(script(TRAIN), [], "cuda 900MiB", Wanted(budgets=("100%", "auto", "min"), largest_batch=True, time_limit=2.0))
    assert found.budgets[0].total_bytes == found.step.total_bytes and found.budgets[0].overhead_permille == 0
    assert [one.budget for one in found.budgets] == ["none", "100%", "auto", "min"]
    tried = dict(found.batches)
    assert tried[found.largest_batch].fits and not tried[found.largest_batch + 1].fits
    # That of the script itself is among them, or between two of them.
    assert tried[16].total_bytes == pytest.approx(found.step.total_bytes, rel=0.02)
    assert "largest batch that fits" in str(found) and "added time" in str(found)


@pytest.mark.parametrize("name", ["gpt-tiny", "resnet-tiny"])
def test_more_memory_never_costs_more_time(name):
    model, inputs = models.make(name)
    step = estimate(model, inputs, "h100", torch.optim.AdamW)
    wanted = ("100%", "70%", "40%", "min")
    rows = budgets(model, inputs, device("h100"), torch.optim.AdamW, step.total_bytes, wanted=wanted, time_limit=4.0)
    assert [one.budget for one in rows] == ["none", *wanted]
    for larger, smaller in zip(rows, rows[1:], strict=False):
        assert larger.overhead_permille <= smaller.overhead_permille
    assert rows[-1].total_bytes < rows[1].total_bytes and rows[-1].recomputes > 0 < rows[-1].overhead_permille
    assert all(one.fits and one.device == smallest(one.total_bytes).name for one in rows)
    # The backward is there, which PyTorch's tracing leaves out on `meta`.
    assert rows[1].total_bytes - device("h100").context > 3 * sum(one.numel() * 4 for one in model.parameters())


def test_the_page_is_one_file_with_the_peak_and_the_tables(script, tmp_path, capsys):
    out = tmp_path / "out.html"
    line = [script(TRAIN), "--device", "h200", "--budgets", "min", "--time-limit", "1", "--page", str(out), "--format", "json", "--", "--amp"]
    assert command.main(line) == 0
    report = json.loads(capsys.readouterr().out)
    text = out.read_text()
    assert not re.findall(r'(?:src|href)="', text) and "default-src" in text
    for words in ("What takes it", "What less memory costs", report["step"]["op"], "train.py"):
        assert words in text, words
    data = json.loads(text.split('id="data">', 1)[1].split("</script>", 1)[0])
    [run] = data["runs"]
    assert data["kinds"][0] == "parameters" and len(run["steps"]) > 20
    taken = [0] * (len(run["steps"]) + 1)
    for _, kind, begin, end, size, _ in run["lives"]:
        assert 5 <= kind < 12 and 0 <= begin < end <= len(run["steps"])
        taken[begin] += size
        taken[end] -= size
    most = now = 0
    for change in taken:
        now += change
        most = max(most, now)
    # Blocks are rounded up.
    assert most == pytest.approx(report["step"]["allocated_bytes"], rel=0.02)
    assert json.loads(text.split('id="report">', 1)[1].split("</script>", 1)[0]) == report


def test_an_estimate_has_a_page_of_its_own():
    model, inputs = models.make("vit-tiny")
    page = estimate(model, inputs, "h100").to_html("<b>vit")
    assert "&lt;b&gt;vit" in page and "<b>vit" not in page and "Batch sizes" not in page


@pytest.mark.skipif(browser.CHROMIUM is None, reason="no Chromium: third_party/fetch.sh installs it where it can")
def test_the_page_is_used_by_keys_and_fits_a_phone(tmp_path):
    model, inputs = models.make("vit-tiny")
    path = tmp_path / "page.html"
    path.write_text(estimate(model, inputs, "h100", torch.optim.AdamW).to_html("vit"))
    with browser.Browser(tmp_path) as window:
        for width in (1280, 375):
            window.open(path, width)
            window.key("p")
            assert "aten::" in window.run("document.getElementById('said').textContent")
            assert window.run("document.documentElement.scrollWidth") == width
            legend = window.run("document.getElementById('legend').textContent")
            assert "activations" in legend and "optimizer" in legend and "workspaces and" not in legend
            assert window.run("document.querySelectorAll('#tensors tbody tr').length") > 10
            assert not window.errors


ENTRY = """
import torch
def step():
    model = torch.nn.Linear(64, 10).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    return model, torch.empty(32, 64, device="cuda"), optimizer, lambda result: result.square().sum()
def wrong():
    return 1
def fails():
    raise ValueError("no data in /data")
"""


def test_an_entry_gives_model_inputs_optimizer_and_loss(script):
    path = script(ENTRY)
    found = fit_entry(f"{path}:step", "h100", wanted=Wanted(budgets=("min",), time_limit=1.0))
    assert found.step.kinds["optimizer"] > 0 and found.step.kinds["parameters"] == 4 * 650 and len(found.budgets) == 2
    for name, message in (("none", "has no function `none`"), ("wrong", "gives `int`"), ("fails", "no data in /data .*:10")):
        with pytest.raises(ModelError, match=message):
            fit_entry(f"{path}:{name}")


FAULTS = {
    "print('hello')": "calls no model with parameters",
    "import torch\ntorch.nn.Linear(2, 2)(torch.ones(1, 2))": "makes no training step",
    "import torch\ntorch.load('missing.pt')": "ends before its first training step: FileNotFoundError: .*missing.pt.*train.py:2",
    "import sys\nsys.exit(3)": "it ends with exit status 3",
    """
import torch
model = torch.nn.Linear(4, 4).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
while True:
    found = model(torch.ones(8, 4, device="cuda"))
    found[found.nonzero()[:, 0]].sum().backward()
    optimizer.step()
""": "fails in its training step 1, at `aten::nonzero`: NotImplementedError",
}


@pytest.mark.parametrize("text", FAULTS, ids=list(FAULTS.values()))
def test_what_cannot_be_estimated_is_named(script, text):
    with pytest.raises(ModelError, match=FAULTS[text]):
        fit_script(script(text), [], "h100", STEP_ONLY)


def test_several_models_have_a_step_and_no_plans(script):
    text = """
import torch
one, other = torch.nn.Linear(8, 8).cuda(), torch.nn.Linear(8, 8).cuda()
optimizer = torch.optim.Adam([*one.parameters(), *other.parameters()])
while True:
    other(one(torch.ones(4, 8, device="cuda"))).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
    found = fit_script(script(text), [], "h100")
    assert found.step.kinds["parameters"] == 2 * 4 * 72 and not found.budgets
    assert found.notes == ["no plans for budgets: several models are called: `Linear`, `Linear`: give `--entry FILE:FUNCTION` for what needs one model and its loss"]


def test_the_command_has_an_exit_status_and_errors_that_say_what_to_do(script, tmp_path, capsys):
    path = script(TRAIN)
    assert command.main([path, "--device", "cuda 610MiB", "--budgets", "none"]) == 1
    assert "does not fit" in capsys.readouterr().out
    for line, message in (
        ([], "give one of a script"),
        ([path, "--entry", f"{path}:step"], "give one of a script"),
        ([path, "--device", "phone"], "`phone` is no device"),
        ([path, "--budgets", "many"], "is no budget"),
        ([path, "--budgets", "fit"], "what is free on a device that is here"),
        ([path, "--precision", "bf16"], "its own `torch.autocast`"),
        ([path, "--budgets", "none", "--page", str(tmp_path / "no" / "page.html")], "cannot be written"),
        ([str(tmp_path / "none.py")], "is no file"),
    ):
        assert command.main(line) == 2, line
        assert message in capsys.readouterr().err, line
    assert command.main([path, "--device", "phone", "--format", "json"]) == 2
    error = json.loads(capsys.readouterr().out)
    assert error["format"] == "remat-error/1" and "no device" in error["error"]["message"]


def test_the_program_knows_the_command():
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run([sys.executable, "-m", "remat_opt", "fit", "-h"], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "--entry" in done.stdout and len(done.stdout.splitlines()) <= 53
