"""A detector that ultralytics exports, in less memory: the same boxes.

    python examples/ultralytics_detector.py --network yolov8n.yaml --size 640 --folder detector

Weights are random, so that nothing is downloaded; `YOLO("yolov8n.pt")` instead is one with weights.
"""

import argparse
import os
import pathlib

import numpy as np
import remat_opt
import torch
from ultralytics import YOLO


def boxes(model, image, size):
    """Boxes, scores and classes that a model finds."""
    return model.predict(image, imgsz=size, conf=0.0, max_det=20, verbose=False)[0].boxes.data.numpy()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--network", default="yolov8n.yaml")
    parser.add_argument("--size", type=int, default=640)
    parser.add_argument("--folder", type=pathlib.Path, default="detector")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    os.chdir(arguments.folder)
    torch.manual_seed(0)

    exported = YOLO(arguments.network, verbose=False).export(format="onnx", imgsz=arguments.size, opset=17, simplify=False)
    print(remat_opt.optimize(exported, output="planned.onnx"))

    # The file alone serves as before: ultralytics reads names and strides from its metadata.
    image = np.random.default_rng(0).integers(0, 255, (arguments.size, arguments.size, 3), dtype=np.uint8)
    before, after = (boxes(YOLO(path, task="detect"), image, arguments.size) for path in (exported, "planned.onnx"))
    print(f"{len(after)} boxes of the file, {'the same' if np.array_equal(before, after) else 'others'}")

    # Ultralytics makes its sessions without options. A callback hands over one that follows the plan of memory, too.
    session, planned = remat_opt.session("planned.onnx"), YOLO("planned.onnx", task="detect")
    planned.add_callback("on_predict_start", lambda predictor: setattr(predictor.model.backend, "session", session))
    after = boxes(planned, image, arguments.size)
    print(f"{len(after)} boxes by the plan, {'the same' if np.array_equal(before, after) else 'others'}")
    print(f"{session.memory().runs} runs followed the plan")


if __name__ == "__main__":
    main()
