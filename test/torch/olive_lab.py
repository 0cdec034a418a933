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
from olive.evaluator.metric import Metric
from olive.evaluator.olive_evaluator import OnnxEvaluator
from olive.model import ONNXModelHandler

MODEL, FOLDER = (pathlib.Path(one).resolve() for one in sys.argv[1:])
DIMS = {"batch_size": 4, "num_channels": 3, "height": 32, "width": 32}


def metrics(path):
    """What Olive's evaluator says of our metrics. Its 0.13 cannot write metrics of type `custom` into the file of a workflow
    that it keeps, so they are not part of one."""
    names = ("peak_memory", "process_memory")
    kinds = [{"name": "bytes", "priority": 1, "higher_is_better": False}]
    function = {"user_script": remat_opt.olive.__file__, "evaluate_func_kwargs": {"dims": DIMS}}
    wanted = [
        Metric(name=name, type="custom", sub_types=kinds, user_config={**function, "evaluate_func": name}) for name in names
    ]
    found = OnnxEvaluator().evaluate(ONNXModelHandler(str(path)), wanted)
    return [found.get_value(name, "bytes") for name in names]


def outputs(path):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    image = numpy.random.default_rng(0).standard_normal((4, 3, 32, 32), dtype=numpy.float32)
    return [one.tobytes().hex() for one in session.run(None, {"pixel_values": image})]


def workflow(name, *passes):
    known = {
        "quantize": {"type": "OnnxDynamicQuantization"},
        "memory": {"type": "RematMemory", "dims": DIMS, "step_limit": 1000, "time_limit": 600.0},
    }
    config = {
        "input_model": {"type": "OnnxModel", "model_path": str(MODEL)},
        "systems": {"here": {"type": "LocalSystem", "accelerators": [{"device": "cpu", "execution_providers": ["CPUExecutionProvider"]}]}},
        "target": "here",
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
print(
    json.dumps(
        {
            "same": outputs(quantized) == outputs(planned),
            "is_quantized": outputs(quantized) != outputs(MODEL),
            "files": sorted(path.name for path in planned.parent.iterdir()),
            "metrics": metrics(planned),
        }
    )
)
