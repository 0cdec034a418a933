"""Folders as exporters write them, planned by the commands of exporters: the same outputs, bit for bit.

Optimum and Olive need other versions of packages than the other tests: they run in processes of their own, whose packages
are those of `third_party/exporters`.
"""

import dataclasses
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import numpy
import onnx
import pytest
import remat_opt
import wheel
from need import NIGHTLY, require
from remat_opt import _components
from remat_opt._components import sizes_at
from snippets import Session, blocks

HERE = pathlib.Path(__file__).resolve().parent
EXAMPLES = HERE.parents[1] / "examples"
PACKAGES = HERE.parents[1] / "third_party" / "exporters"
COMMAND = HERE.parents[1] / "tools" / "python" / "optimum"
"""The package that makes the command known."""
GUIDE = HERE.parents[1] / "docs" / "guides" / "exporters.md"
QUIET = {
    "HF_HUB_OFFLINE": "1", "CI": "true", "OLIVE_DISABLE_TELEMETRY": "1",
    "YOLO_OFFLINE": "true", "YOLO_AUTOINSTALL": "false", "YOLO_CONFIG_DIR": tempfile.gettempdir(),
}  # fmt: skip
"""Nothing is asked of a network, and nothing told to one."""
SEARCH = ("--step_limit", "1000", "--time_limit", "10min")
"""The same plans on every machine."""

require("torch", (PACKAGES / "optimum").is_dir(), "third_party/exporters is not there: nothing was exported by Optimum")


def run(*line, status=0, first=()):
    """What a program prints whose packages are those of exporters, behind those of other folders."""
    ours = pathlib.Path(remat_opt.__file__).parents[1]
    paths = os.pathsep.join(map(str, [*first, PACKAGES, COMMAND, ours]))
    done = subprocess.run(
        [sys.executable, *map(str, line)],
        env=os.environ | QUIET | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stderr
    return done.stdout if status == 0 else done.stderr


def remat(*arguments, **keywords):
    return run("-m", "optimum.commands.optimum_cli", "onnxruntime", "remat", *arguments, **keywords)


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """Models with random weights, a folder each."""
    folder = tmp_path_factory.mktemp("exported")
    names = ["bert", "gpt2", "vit", *(["diffusion"] if NIGHTLY else [])]
    run(HERE / "exporters_lab.py", "export", folder, *names)
    return folder


@pytest.mark.parametrize(
    ("name", "models"),
    [
        ("bert", ["model"]),
        ("gpt2", ["model"]),
        pytest.param("vit", ["model"], marks=pytest.mark.skipif(not NIGHTLY, reason="every night: BERT is the same path")),
    ],
)
def test_a_planned_folder_gives_the_outputs_of_the_original_and_its_plans_are_followed(exported, tmp_path, name, models):
    source, target = exported / name, tmp_path / "small"
    said = remat("--onnx_model", source, "-o", target, *SEARCH)
    rows = [line for line in said.splitlines() if line.startswith(tuple(f"{one}.onnx" for one in models))]
    assert len(rows) == len(models)
    assert all(" -> " in row and row.endswith("bit-identical") for row in rows), said
    assert "planned at batch_size=1" in said
    copied = {path.name for path in source.iterdir() if path.suffix != ".onnx"}
    plans = {f"{one}.onnx{end}" for one in models for end in ("", ".arena")}
    assert {path.name for path in target.iterdir()} == copied | plans | {"libremat_arena.so"}
    before, after = map(json.loads, run(HERE / "exporters_lab.py", "run", name, source, target).splitlines()[-2:])
    assert before["digests"] == after["digests"]
    assert len(after["followed"]) == len(models) and min(after["followed"]) >= 2
    assert before["followed"] == []


def test_the_commands_of_the_guide_plan_whisper_with_what_they_need_alone(tmp_path):
    """As printed, in a new environment; what they would download has random weights here."""
    require("wheel", bool(wheel.BUILT), "there is no wheel: `make test-wheel` builds it where maturin can be installed")
    page = blocks(GUIDE.name, GUIDE.read_text())
    commands = next(block for block in page if "optimum-cli onnxruntime remat" in block.code)
    shown = GUIDE.read_text().split("```text\n")[1].split("```")[0]

    environment = wheel.Environment(tmp_path / "environment")
    environment.variables |= {**QUIET, "PATH": f"{environment.folder}:{environment.variables['PATH']}"}
    sources = shutil.copytree(COMMAND, tmp_path / "command")
    built = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index", "--no-build-isolation", "-w", tmp_path, sources]
    subprocess.run(built, check=True)
    # Optimum has its program; what it depends on is linked, but for itself.
    environment.install("--no-deps", "optimum", "optimum-onnx", next(tmp_path.glob("*.whl")))
    environment.link("optimum-onnx", first=[PACKAGES])

    environment.run("python", HERE / "exporters_lab.py", "save", tmp_path / "openai" / "whisper-tiny", "whisper")
    with Session(tmp_path, environment.variables) as session:
        fault = session.fault(dataclasses.replace(commands, shown=f"…\n{shown}…", tolerance=60))
        assert fault is None, fault
    models = ["decoder_model", "encoder_model"]
    folders = (tmp_path / "whisper", tmp_path / "whisper-small")
    said = environment.run("python", HERE / "exporters_lab.py", "run", "whisper", *folders)
    before, after = map(json.loads, said.splitlines()[-2:])
    assert before["digests"] == after["digests"]
    assert before["followed"] == []
    assert len(after["followed"]) == len(models) and min(after["followed"]) >= 2


@pytest.mark.skipif(not NIGHTLY, reason="every night: Whisper has several models, too")
def test_the_parts_of_a_pipeline_are_planned_in_their_folders(exported, tmp_path):
    source, target = exported / "diffusion", tmp_path / "small"
    said = remat("--onnx_model", source, "-o", target, *SEARCH)
    parts = ("text_encoder", "unet", "vae_decoder", "vae_encoder")
    assert [line.split()[0] for line in said.splitlines()[1:5]] == [f"{part}/model.onnx" for part in parts]
    assert "latent_height=16" in said and "sequence_length=16" in said
    assert re.search(r"^unet/model.onnx .* -> .* -\d+ % .* bit-identical$", said, re.MULTILINE), said
    assert (target / "model_index.json").read_bytes() == (source / "model_index.json").read_bytes()
    before, after = map(json.loads, run(HERE / "exporters_lab.py", "run", "diffusion", source, target).splitlines()[-2:])
    assert before["digests"] == after["digests"]
    # The U-Net runs in each of two steps.
    assert before["followed"] == [] and max(after["followed"]) >= 2


EXPORT = """
import pathlib, sys
import exporters_lab
from optimum.exporters.onnx import onnx_export_from_model
model, task = exporters_lab.bert()
onnx_export_from_model(model.eval(), pathlib.Path(sys.argv[1]), task=task, do_validation=False, remat=True)
"""


def test_the_patch_makes_the_exporter_plan_what_it_wrote(tmp_path):
    shutil.copytree(PACKAGES / "optimum", tmp_path / "optimum")
    patch = HERE.parents[1] / "examples" / "optimum-onnx.patch"
    subprocess.run(["git", "apply", patch], cwd=tmp_path, check=True)
    run("-c", EXPORT, tmp_path / "bert", first=[tmp_path, HERE])
    assert {path.name for path in (tmp_path / "bert").iterdir()} >= {"config.json", "model.onnx", "model.onnx.arena"}


def test_what_is_wrong_with_a_folder_is_said_and_nothing_is_left(exported, tmp_path):
    source = exported / "bert"
    assert "lies inside" in remat("--onnx_model", source, "-o", source / "small", status=1)
    (tmp_path / "empty").mkdir()
    assert "has no model" in remat("--onnx_model", tmp_path / "empty", "-o", tmp_path / "small", status=1)
    bare = tmp_path / "bare"
    bare.mkdir()
    (bare / "model.onnx").write_bytes((source / "model.onnx").read_bytes())
    assert "--dim sequence_length=N" in remat("--onnx_model", bare, "-o", tmp_path / "small", status=1)
    assert not (tmp_path / "small").exists()


def test_sizes_of_a_cache_are_derived_and_count_among_those_of_the_text(exported):
    dims = {"batch_size": 1, "past_sequence_length": 1, "sequence_length": 255, "past_sequence_length + sequence_length": 256}
    assert sizes_at(exported / "gpt2", "model.onnx", {}) == dims
    assert sizes_at(exported / "gpt2", "model.onnx", {"past_sequence_length": 200}) == {
        **dims,
        "past_sequence_length": 200,
        "sequence_length": 56,
    }


def test_a_model_where_nothing_takes_less_memory_is_copied_and_has_no_plan(exported, tmp_path):
    source, target = tmp_path / "bert", tmp_path / "small"
    shutil.copytree(exported / "bert", source)
    shutil.copy(source / "model.onnx", source / "tiny.onnx")

    # Whether a small model gains is for the measurement to say; here it does not, whatever the machine.
    def grown(model, **keywords):
        result = remat_opt.optimize(model, **keywords)
        if model.stem == "tiny":
            result.report["memory"]["after_bytes"] = result.report["memory"]["before_bytes"]
        return result

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_components, "optimize", grown)
        found = remat_opt.optimize_folder(source, target, step_limit=1000, threads=1, time_limit=600)
    assert [(one.name, one.changed) for one in found] == [("model.onnx", True), ("tiny.onnx", False)]
    assert (target / "tiny.onnx").read_bytes() == (source / "tiny.onnx").read_bytes()
    assert "nothing gained" in str(found)
    assert sorted(target.glob("*.arena")) == [target / "model.onnx.arena"]
    assert (target / "libremat_arena.so").exists()


EXAMPLE = """
import dataclasses, functools, json, runpy, sys
import remat_opt._counts
for name in ("optimize", "optimize_folder"):
    setattr(remat_opt, name, functools.partial(getattr(remat_opt, name), step_limit=1000, threads=1, time_limit=600))
library, sys.argv = sys.argv[1], sys.argv[2:]
runpy.run_path(sys.argv[0], run_name="__main__")
counts = remat_opt._counts.library(library).read(0)
print(json.dumps(counts and dataclasses.asdict(counts)))
"""
"""Runs a script with the same plans on every machine, and prints what the library of the planned model counted of its first
session."""


def example(package, name, library, *arguments):
    """What an example prints, and what the library counted of its session, if there was one."""
    require("torch", (PACKAGES / package).is_dir(), f"{package} is not in third_party/exporters: {name} was not run")
    *said, counts = run("-c", EXAMPLE, library, EXAMPLES / name, *arguments).splitlines()
    return "\n".join(said), json.loads(counts)


def before(path):
    """Most that the buffers of a run of a model take without a plan of memory, as it is measured."""
    report = remat_opt.inspect(path)
    assert report["baseline_of"] == "measured"
    return report["baseline_peak_bytes"]


def most_bytes(counts):
    """Most that a session took while it followed its plan in all of its runs."""
    assert counts["runs"] >= 1 and counts["missed"] == counts["refused"] == 0
    return counts["most_used_bytes"] + counts["most_outside_bytes"]


def test_a_detector_of_ultralytics_finds_the_same_boxes_in_less_memory(tmp_path):
    arguments = ("--size", 160, "--folder", tmp_path)
    said, counts = example("ultralytics", "ultralytics_detector.py", tmp_path / "libremat_arena.so", *arguments)
    assert "20 boxes of the file, the same" in said and "20 boxes by the plan, the same" in said
    assert most_bytes(counts) < 0.8 * before(tmp_path / "yolov8n.onnx")


def test_embeddings_of_sentences_are_the_same_and_take_less_memory(tmp_path):
    library = tmp_path / "small" / "onnx" / "libremat_arena.so"
    said, counts = example("sentence_transformers", "sentence_embeddings.py", library, "--folder", tmp_path)
    assert "3 embeddings, the same" in said
    assert most_bytes(counts) > 0
    (row,) = [line for line in said.splitlines() if line.startswith("onnx/model.onnx")]
    assert float(re.search(r" ([-+]\d+) %", row)[1]) <= -10 and row.endswith("bit-identical")


def test_a_decoder_of_diffusers_gives_the_image_in_less_memory(tmp_path):
    arguments = ("--size", 32, "--fission", "close", "--folder", tmp_path)
    said, counts = example("diffusers", "diffusers_decoder.py", tmp_path / "libremat_arena.so", *arguments)
    found = re.search(r"image \(1, 3, 256, 256\), (\S+) from that of PyTorch", said)
    assert found and float(found[1]) < 1e-4
    assert most_bytes(counts) < 0.9 * before(tmp_path / "decoder.onnx")


def outputs(session):
    """What a session computes of random inputs, the same for each with such inputs."""
    random = numpy.random.default_rng(0)
    feeds = {
        one.name: random.integers(0, 2, one.shape) if "int" in one.type else random.random(one.shape, numpy.float32)
        for one in session.get_inputs()
    }
    return [one.tobytes() for one in session.run(None, feeds)]


def test_a_slimmed_model_is_planned_and_slimming_after_undoes_the_plan(tmp_path):
    exported, slimmed, small, undone = (tmp_path / f"{one}.onnx" for one in ("exported", "small.slimmed", "small", "undone"))
    # What exporters leave: a node that does nothing.
    model = onnx.load(HERE.parent / "models" / "unet_tiny_train.onnx")
    image = model.graph.input[0].name
    for node in model.graph.node:
        node.input[:] = ["copied" if name == image else name for name in node.input]
    model.graph.node.insert(0, onnx.helper.make_node("Identity", [image], ["copied"]))
    onnx.save(model, exported)

    said, _ = example("onnxslim", "onnxslim_first.py", tmp_path / "libremat_arena.so", exported, "-o", small, "--budget", "45%")
    assert f"OnnxSlim: {len(model.graph.node)} -> {len(model.graph.node) - 1} nodes" in said
    session = remat_opt.session(small)
    assert outputs(session) == outputs(remat_opt.session(slimmed))
    planned = most_bytes(dataclasses.asdict(session.memory()))
    assert planned < 0.8 * before(slimmed)

    run("-c", "import onnx, onnxslim, sys; onnx.save(onnxslim.slim(sys.argv[1]), sys.argv[2])", small, undone)
    assert before(undone) > 1.2 * planned
    assert "order anchors are gone: a simplifier went over the rewritten file" in remat_opt.inspect(undone)["warnings"][0]
    assert not remat_opt.inspect(small)["warnings"]


def test_options_are_for_one_model(tmp_path):
    for name in ("encoder", "decoder"):
        (tmp_path / f"{name}_model.onnx").touch()
    with pytest.raises(remat_opt.UsageError, match="has 2 models"):
        remat_opt.session_options(tmp_path)


def test_a_workflow_of_olive_quantizes_then_plans(exported, tmp_path):
    require("torch", (PACKAGES / "olive").is_dir(), "olive-ai is not in third_party/exporters: no workflow was run")
    found = json.loads(run(HERE / "olive_lab.py", exported / "vit" / "model.onnx", tmp_path / "olive").splitlines()[-1])
    assert found["is_quantized"]
    assert found["same"]
    assert "model.onnx.arena" in found["files"]
    assert all(value > 0 for value in found["metrics"])
    assert len(found["metrics"]) == 2
