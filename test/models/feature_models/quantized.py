"""Quantized models in both forms."""

import numpy as np
import onnx

from feature_models.feature import IMAGE, feature_of


def quantization(f):
    """The scales and zero points of activations and weights, and the weights themselves."""
    f.constant("scale", 0.05)
    f.constant("zero_point", 128, np.uint8)
    f.constant("weight.scale", 0.02)
    f.constant("weight.zero_point", 0, np.int8)
    weights = np.arange(4 * 4).reshape(4, 4, 1, 1) % 7 - 3
    f.constant("weight", weights, np.int8)


@feature_of(IMAGE)
def quantized(f):
    """Integer convolution between quantize and dequantize, with an annotation; all three are recomputed."""
    quantization(f)
    f.op("QuantizeLinear", ["x", "scale", "zero_point"], "q")
    operands = ["scale", "zero_point", "weight", "weight.scale", "weight.zero_point", "scale", "zero_point"]
    f.op("QLinearConv", ["q", *operands], "conv")
    f.op("DequantizeLinear", ["conv", "scale", "zero_point"], "skip")
    annotation = onnx.TensorAnnotation(tensor_name="conv")
    annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="scale")
    annotation.quant_parameter_tensor_names.add(key="ZERO_POINT_TENSOR", value="zero_point")
    f.annotations.append(annotation)
    f.output(f.finish("skip", f.pressure("skip")), IMAGE)
    f.state(recomputed=["skip"])


@feature_of(IMAGE)
def quantize_dequantize(f):
    """The other form of quantized models: float operators between pairs, which the runtime fuses if it can."""
    quantization(f)
    f.op("QuantizeLinear", ["x", "scale", "zero_point"], "x.q")
    f.op("DequantizeLinear", ["x.q", "scale", "zero_point"], "x.dq")
    f.op("DequantizeLinear", ["weight", "weight.scale", "weight.zero_point"], "weight.dq")
    f.op("Conv", ["x.dq", "weight.dq"], "conv")
    f.op("QuantizeLinear", ["conv", "scale", "zero_point"], "q")
    f.op("DequantizeLinear", ["q", "scale", "zero_point"], "skip")
    f.output(f.finish("skip", f.pressure("skip")), IMAGE)
    f.state(recomputed=["skip"])
