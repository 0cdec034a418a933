"""onnx-simplifier: folds constants and removes nodes; then ONNX Runtime as it is."""

from adapter import Adapter


class OnnxSim(Adapter):
    needs = ("onnxsim", "onnxruntime")
    asked = {(task, "onnx"): {"simplify": {}} for task in ("order", "+ tiles", "any shape")}

    def prepare(self, case, options, model, folder):
        import onnx
        import onnxsim

        path = folder / "model.onnx"
        onnx.save(onnxsim.simplify(onnx.load(str(model)))[0], str(path))
        return {"model": str(path)}
