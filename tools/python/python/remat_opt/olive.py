"""Olive: a pass that plans the memory of a model, and metrics of memory.

    python -m remat_opt.olive > packages.json
    olive run --config workflow.json --package-config packages.json

Olive looks passes up in a list of packages, which `package_config` gives: its own and ours. A workflow names the pass
`RematMemory`; put it last, because passes after it would undo the plan. Metrics are functions for `evaluate_func` of a
metric of type `custom`, with this file (`__file__`) as `user_script`. The module needs the package `olive-ai`.
"""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from olive.hardware.accelerator import AcceleratorSpec
from olive.model import ONNXModelHandler
from olive.model.utils import resolve_onnx_path
from olive.package_config import OlivePackageConfig
from olive.passes import Pass
from olive.passes.pass_config import BasePassConfig, PassConfigParam

import remat_opt
from remat_opt._components import sizes_at

__all__ = ["RematMemory", "package_config", "peak_memory", "process_memory"]

_NAME = "RematMemory"


class RematMemory(Pass):
    """Rewrites an ONNX model so that it does the same work in less memory, with the same outputs."""

    @classmethod
    def _default_config(cls, accelerator_spec: AcceleratorSpec) -> dict[str, PassConfigParam]:
        return {
            "budget": PassConfigParam(type_=str, default_value="auto", description="As of `remat_opt.optimize`."),
            "dims": PassConfigParam(
                type_=dict,
                default_value=None,
                description="Sizes of open dimensions to plan at; others are 1 for the batch, else of the configurations.",
            ),
            "time_limit": PassConfigParam(type_=float, default_value=10.0, description="Seconds to search."),
            "step_limit": PassConfigParam(type_=int, default_value=None, description="Most steps of the search."),
            "arena_plan": PassConfigParam(type_=bool, default_value=True, description="Plan where each buffer lies, too."),
        }

    def _run_for_config(
        self, model: ONNXModelHandler, config: type[BasePassConfig], output_model_path: str
    ) -> ONNXModelHandler:
        """The planned model in a folder with its weights and its plan of memory; the model that came where nothing
        takes less memory.

        Raises:
            RematError: As `remat_opt.optimize`.
        """
        source = pathlib.Path(model.model_path)
        target = pathlib.Path(resolve_onnx_path(output_model_path, source.name))
        limits = {} if config.step_limit is None else {"step_limit": config.step_limit, "threads": 1}
        result = remat_opt.optimize(
            source,
            config.budget,
            output=target,
            dims=sizes_at(source.parent, source.name, config.dims or {}),
            time_limit=config.time_limit,
            arena_plan=config.arena_plan,
            **limits,
        )
        if not result.changed:
            return model
        settings = model.inference_settings
        return ONNXModelHandler(str(target.parent), onnx_file_name=target.name, inference_settings=settings)


def package_config() -> dict[str, Any]:
    """What `olive run --package-config` takes: Olive's own passes, and `RematMemory`."""
    with open(OlivePackageConfig.get_default_config_path(), encoding="utf-8") as file:
        known: dict[str, Any] = json.load(file)
    every = {f"supported_{kind}": ["*"] for kind in ("accelerators", "precisions")}
    ours = {"module_path": f"{__spec__.name if __spec__ else __name__}.{_NAME}", "supported_providers": ["CPUExecutionProvider"]}
    known["passes"][_NAME] = {**ours, **every, "supported_algorithms": [], "supported_quantization_encodings": []}
    return known


def peak_memory(
    model: ONNXModelHandler, device: Any = None, execution_providers: Any = None, dims: Mapping[str, int] | None = None
) -> int:
    """A metric: bytes of results, inputs and workspace at the peak of a run, predicted; weights apart.

    Args:
        model: The model.
        device: Not used: the model is one for the processor.
        execution_providers: Not used.
        dims: Sizes of open dimensions (`evaluate_func_kwargs`); others as for the pass.
    """
    path = pathlib.Path(model.model_path)
    return int(remat_opt.inspect(path, dims=sizes_at(path.parent, path.name, dims or {}))["peak_bytes"])


def process_memory(
    model: ONNXModelHandler, device: Any = None, execution_providers: Any = None, dims: Mapping[str, int] | None = None
) -> int:
    """A metric: bytes by which a process of its own grows while it loads the model in `remat_opt.session` and runs it
    twice on zeros, measured at the largest. Linux only.

    Args:
        model: The model.
        device: Not used: the model is one for the processor.
        execution_providers: Not used.
        dims: Sizes of open dimensions (`evaluate_func_kwargs`); others as for the pass.

    Raises:
        RuntimeError: The process failed; the message is what it printed.
    """
    path = pathlib.Path(model.model_path)
    sizes = sizes_at(path.parent, path.name, dims or {})
    line = [sys.executable, "-c", _CHILD, str(path), json.dumps(sizes)]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"`{path}` did not run: {done.stderr}")
    return int(done.stdout)


_CHILD = """
import json, pathlib, sys
import numpy, onnxruntime, remat_opt

def kib(key):
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(key + ":"))

kinds = {"float": "float32", "double": "float64"}
path, sizes = sys.argv[1], json.loads(sys.argv[2])
pathlib.Path("/proc/self/clear_refs").write_text("5")
before = kib("VmRSS")
session = remat_opt.session(path)
feed = {}
for one in session.get_inputs():
    kind = one.type[7:-1]
    feed[one.name] = numpy.zeros([sizes.get(dim, dim) for dim in one.shape], kinds.get(kind, kind))
for _ in range(2):
    session.run(None, feed)
print((kib("VmHWM") - before) * 1024)
"""


if __name__ == "__main__":
    json.dump(package_config(), sys.stdout, indent=2)
    print()
