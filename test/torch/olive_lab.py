"""A workflow of Olive in a process of its own, whose packages are those of `third_party/exporters`: a model is
quantized, then its memory is planned. `python olive_lab.py MODEL FOLDER`.
"""

import json
import pathlib
import sys

import numpy
import onnxruntime
import remat_opt.olive
from olive.cli.launcher import main

MODEL, FOLDER = (pathlib.Path(one).resolve() for one in sys.argv[1:])
DIMS = {"batch_size": 4, "num_channels": 3, "height": 32, "width": 32}


def metric(name, priority):
    function = {"user_script": remat_opt.olive.__file__, "evaluate_func": name, "evaluate_func_kwargs": {"dims": DIMS}}
    kinds = [{"name": "bytes", "priority": priority, "higher_is_better": False}]
    return {"name": name, "type": "custom", "sub_types": kinds, "user_config": function}


def outputs(path):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    image = numpy.random.default_rng(0).standard_normal((4, 3, 32, 32), dtype=numpy.float32)
    return [one.tobytes().hex() for one in session.run(None, {"pixel_values": image})]


def workflow(name, *passes):
    evaluator = {"metrics": [metric("peak_memory", 1), metric("process_memory", 2)]}
    known = {
        "quantize": {"type": "OnnxDynamicQuantization"},
        "memory": {"type": "RematMemory", "dims": DIMS, "step_limit": 1000, "time_limit": 600.0, "evaluator": "memory"},
    }
    config = {
        "input_model": {"type": "OnnxModel", "model_path": str(MODEL)},
        "systems": {"here": {"type": "LocalSystem", "accelerators": [{"device": "cpu", "execution_providers": ["CPUExecutionProvider"]}]}},
        "target": "here",
        "evaluators": {"memory": evaluator},
        "passes": {one: known[one] for one in passes},
        "evaluate_input_model": False,
        "cache_dir": str(FOLDER / "cache"),
        "output_dir": str(FOLDER / name),
    }  # fmt: skip
    (FOLDER / f"{name}.json").write_text(json.dumps(config))
    main(["run", "--config", f"{FOLDER / name}.json", "--package-config", str(FOLDER / "packages.json")])
    return next((FOLDER / name).rglob("*.onnx"))


FOLDER.mkdir(exist_ok=True)
(FOLDER / "packages.json").write_text(json.dumps(remat_opt.olive.package_config()))
quantized, planned = workflow("quantized", "quantize"), workflow("planned", "quantize", "memory")
metrics = [path.read_text() for path in (FOLDER / "planned").rglob("metrics.json")]
print(
    json.dumps(
        {
            "same": outputs(quantized) == outputs(planned),
            "is_quantized": outputs(quantized) != outputs(MODEL),
            "files": sorted(path.name for path in planned.parent.iterdir()),
            "metrics": metrics,
        }
    )
)
