"""OnnxSlim: folds constants, merges nodes and removes them; then ONNX Runtime as it is."""

from adapter import Adapter


class OnnxSlim(Adapter):
    needs = ("onnxslim", "onnxruntime")
    asked = {(task, "onnx"): {"slim": {}} for task in ("order", "+ tiles", "any shape")}

    def prepare(self, case, options, model, folder):
        import onnxslim

        path = folder / "model.onnx"
        onnxslim.slim(str(model), str(path))
        return {"model": str(path)}
