"""Compiles MLIR with IREE and runs it; compares with ONNX Runtime. All of it is optional: `why_not()` says what is missing."""

import dataclasses
import importlib.util
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime as ort

FLAGS = [
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
]


def program(name):
    """A program of the wheels `iree-base-compiler` and `iree-base-runtime`; `None` where it is missing."""
    found = pathlib.Path(sys.executable).parent / name
    return found if found.exists() else None


def why_not():
    """Why there is no IREE to test with; nothing if there is one."""
    missing = [name for name in ("iree-compile", "iree-run-module") if program(name) is None]
    if missing:
        return f"{' and '.join(missing)} not found: third_party/fetch.sh installs IREE where there are wheels"
    return None


def torch_mlir_opt():
    """The program of that name in the wheel `torch-mlir`; `None` where that is missing."""
    package = importlib.util.find_spec("torch_mlir")
    if package is None:
        return None
    # The package has no file of its own.
    folder = pathlib.Path(next(iter(package.submodule_search_locations)))
    found = folder / "_mlir_libs" / "torch-mlir-opt"
    return found if found.exists() else None


def inputs(path, dims=None):
    """Random inputs of a model by name, integers 0 or 1, with the named dimensions that `dims` gives."""
    graph = onnx.load(str(path), load_external_data=False).graph
    constants = {i.name for i in graph.initializer}
    random = np.random.default_rng(0)
    feed = {}
    for value in graph.input:
        if value.name in constants:
            continue
        tensor = value.type.tensor_type
        shape = [dim.dim_value or (dims or {})[dim.dim_param] for dim in tensor.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        is_float = np.issubdtype(dtype, np.floating)
        numbers = random.standard_normal(shape) if is_float else random.integers(0, 2, shape)
        feed[value.name] = numbers.astype(dtype)
    return feed


def reference(path, feed):
    """The outputs in ONNX Runtime."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"]).run(None, feed)


@dataclasses.dataclass
class Run:
    """What a module gave."""

    outputs: list
    peak: int
    """Bytes that the device's allocator held at most: inputs, outputs, and what lives in between."""


def compiled(mlir, *flags):
    """The module of a text, for the processor of this machine."""
    module = mlir.with_suffix(".vmfb")
    command = [program("iree-compile"), mlir, "-o", module, *FLAGS, *flags]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    errors = [line for line in done.stderr.splitlines() if "error:" in line]
    assert done.returncode == 0, "\n".join(errors[:3]) or done.stderr
    return module


def run(mlir, feed, outputs, *flags, parameters=None):
    """Compiles the text and runs its function once, with the weights in the file `parameters`, in a process of its own: the peak is that of one run."""
    module = compiled(mlir, *flags)
    function = re.search(r"func\.func @(\w+)", mlir.read_text()[:1000]).group(1)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        command = [program("iree-run-module"), f"--module={module}", "--device=local-sync", f"--function={function}"]
        if parameters:
            command.append(f"--parameters=model={parameters}")
        for index, array in enumerate(feed.values()):
            np.save(folder / f"in{index}.npy", array)
            command.append(f"--input=@{folder}/in{index}.npy")
        command += [f"--output=@{folder}/out{index}.npy" for index in range(outputs)]
        command.append("--print_statistics=true")
        done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        peak = int(re.search(r"DEVICE_LOCAL:\s*(\d+)B peak", done.stdout + done.stderr).group(1))
        return Run([np.load(folder / f"out{index}.npy") for index in range(outputs)], peak)


def distance(found, expected):
    """The largest difference of any output, as a share of that output's largest number. Numbers below 1e-4 count as that: what is
    nothing but rounding, the gradient of a bias before a normalization say, has no digits to agree in."""
    worst = 0.0
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected):
        assert ours.shape == theirs.shape
        if theirs.size:
            ours, theirs = ours.astype(np.float64), theirs.astype(np.float64)
            worst = max(worst, np.abs(ours - theirs).max() / max(np.abs(theirs).max(), 1e-4))
    return worst
