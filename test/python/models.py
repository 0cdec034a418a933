"""The models that there are to test with, and what they say of themselves."""

import pathlib
import sys

import need
import numpy as np
import onnx
import onnx.backend.test

ROOT = pathlib.Path(__file__).resolve().parents[2]
OWN = sorted((ROOT / "test" / "models").glob("*.onnx"))
FEATURES = sorted((ROOT / "test" / "models" / "features").glob("*.onnx"))
SHARED = sorted((ROOT.parent / "shared" / "models").glob("*.onnx"))
HEAVY = ("light_bvlc_alexnet", "light_vgg19", "light_zfnet512")
"""Networks of the `onnx` package whose weights take hundreds of megabytes once the runtime has filled them."""
LIGHT = sorted(
    path
    for path in (pathlib.Path(onnx.backend.test.__file__).parent / "data" / "light").glob("*.onnx")
    if path.stem not in HEAVY
)
"""Well-known networks of the `onnx` package, their weights filled with one number each."""
LIGHTEST = LIGHT if need.NIGHTLY else [path for path in LIGHT if path.stem == "light_squeezenet"]
"""Those of them that every change is tested with."""
LARGER = SHARED if need.NIGHTLY else [path for path in SHARED if path.stem == "unet_infer"]
"""Those of the larger models that every change is tested with."""

sys.path.insert(0, str(ROOT / "test" / "models"))
from generate_matrix import BUILDERS, generate  # noqa: E402
from network import Network  # noqa: E402

FLOAT, INT64, BOOL = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64, onnx.TensorProto.BOOL


class Builder(Network):
    """A model, node by node."""

    def __init__(self, inputs, outputs):
        super().__init__("g")
        for name, kind, dims in inputs:
            self.input(name, dims, kind)
        for name, kind, dims in outputs:
            self.output(name, dims, kind)

    def weight(self, name, *dims):
        values = self.random.standard_normal(dims) / np.sqrt(max(1, np.prod(dims[1:])))
        return self.constant(name, values.astype(np.float32))

    def save(self, path):
        model = self.proto()
        onnx.checker.check_model(model)
        onnx.save(model, path)
        return path


__all__ = ["BUILDERS", "FEATURES", "LARGER", "LIGHT", "LIGHTEST", "OWN", "ROOT", "SHARED", "Facts", "Network", "generate"]


class Facts:
    """What a generated model states in its metadata: names by kind, and what it has to be run with."""

    def __init__(self, path):
        properties = onnx.load(str(path), load_external_data=False).metadata_props
        stated = {p.key.removeprefix("test."): p.value.split() for p in properties}
        self.recomputed = set(stated.get("recomputed", []))
        self.never = set(stated.get("never", []))
        dims, sizes = stated.get("dims", []), stated.get("sizes", [])
        self.arguments = [f"--dim={dim}" for dim in dims] + [f"--size={size}" for size in sizes]
        self.dims = {name: int(number) for name, number in (dim.rsplit("=", 1) for dim in dims)}
