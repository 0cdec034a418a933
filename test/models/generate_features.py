#!/usr/bin/env python3
"""Writes the models of `features/`: for each feature of ONNX that touches rewriting, one small model that has it.

    python test/models/generate_features.py [FOLDER]

Needs `onnx` and `numpy`. The files are the same on every run and machine. All models have one form: a large result is
made early (the feature stands here, or reads it at the end), a short stretch takes much memory, and then the early result
is needed again. A budget that fits the stretch alone, but not beside the early result, makes every plan recompute the early
one. See README.md for what is stated in the metadata of each model.
"""

import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
SHAPE = [4, 256]
IMAGE = [1, 4, 16, 16]


def value(name, shape=SHAPE, element=FLOAT):
    return helper.make_tensor_value_info(name, element, shape)


def body(name, nodes, inputs, outputs, constants=()):
    """A subgraph."""
    return helper.make_graph(nodes, name, inputs, outputs, list(constants))


class Feature:
    """A model under construction: nodes in the order of execution, and what tests should know of it."""

    def __init__(self, name, shape=SHAPE, opset=20, ir_version=9):
        self.name = name
        self.ir_version = ir_version
        self.opsets = {"": opset}
        self.nodes = []
        self.inputs = [value("x", shape)]
        self.outputs = []
        self.constants = []
        self.sparse = []
        self.functions = []
        self.annotations = []
        self.facts = {}
        self.outside = b""

    def op(self, kind, inputs, outputs, name=None, **attributes):
        """Adds a node, named like its first result unless `name` says otherwise; returns the first result."""
        outputs = [outputs] if isinstance(outputs, str) else outputs
        name = next(o for o in outputs if o) if name is None else name
        self.nodes.append(helper.make_node(kind, inputs, outputs, name=name, **attributes))
        if attributes.get("domain"):
            self.opsets.setdefault(attributes["domain"], 1)
        return outputs[0]

    def constant(self, name, values, dtype=np.float32):
        self.constants.append(numpy_helper.from_array(np.array(values, dtype), name))
        return name

    def keep_outside(self, tensor):
        """Moves the values of a constant to a file beside the model."""
        self.outside = tensor.raw_data
        onnx.external_data_helper.set_external_data(tensor, f"{self.name}.bin", 0, len(self.outside))
        tensor.ClearField("raw_data")

    def output(self, name, shape=SHAPE, element=FLOAT):
        self.outputs.append(value(name, shape, element))

    def pressure(self, tensor, name="pressure"):
        """Takes four times the memory of `tensor` beside it, and leaves a number."""
        self.op("Concat", [tensor, tensor], f"{name}.wide", axis=0)
        self.op("Sigmoid", [f"{name}.wide"], f"{name}.sigmoid")
        return self.op("ReduceMean", [f"{name}.sigmoid"], f"{name}.mean", keepdims=0)

    def finish(self, *tensors, name="y"):
        """Adds the tensors up; all of them broadcast."""
        self.op("Sum", list(tensors), name)
        return name

    def state(self, recomputed=(), never=(), dims=None, sizes=None):
        """What tests need to know: nodes that a tight plan recomputes, that no plan does; open dimensions and sizes."""
        facts = {"recomputed": " ".join(recomputed), "never": " ".join(never)}
        for key, given in (("dims", dims), ("sizes", sizes)):
            facts[key] = " ".join(f"{name}={number}" for name, number in (given or {}).items())
        self.facts = {f"test.{key}": text for key, text in facts.items() if text}

    def proto(self):
        graph = helper.make_graph(
            self.nodes, self.name, self.inputs, self.outputs, self.constants, sparse_initializer=self.sparse
        )
        graph.quantization_annotation.extend(self.annotations)
        imports = [helper.make_opsetid(domain, version) for domain, version in self.opsets.items()]
        model = helper.make_model(
            graph,
            opset_imports=imports,
            functions=self.functions,
            producer_name="generate_features.py",
            ir_version=self.ir_version,
        )
        helper.set_model_props(model, self.facts)
        return model


FEATURES = []


def feature(build):
    """Registers a function that fills a `Feature`; its name is that of the model."""
    FEATURES.append(build)
    return build


# Subgraphs


def branch(name, kind, inputs, shape=SHAPE):
    """A branch of one node."""
    out = f"{name}.out"
    return body(name, [helper.make_node(kind, inputs, [out], name=out)], [], [value(out, shape)])


@feature
def if_captures(f):
    """Both branches read a result that is recomputed; each `If` takes another branch."""
    f.op("Exp", ["x"], "skip")
    mean = f.pressure("skip")
    f.constant("zero", 0)
    f.op("Greater", [mean, "zero"], "yes")
    f.op("Less", [mean, "zero"], "no")
    for condition in ("yes", "no"):
        then, other = f"{condition}.then", f"{condition}.else"
        f.op(
            "If",
            [condition],
            f"{condition}.y",
            then_branch=branch(then, "Mul", ["skip", mean]),
            else_branch=branch(other, "Sub", ["skip", mean]),
        )
    f.output(f.finish("yes.y", "no.y"))
    f.state(recomputed=["skip"], never=["yes.y", "no.y"])


@feature
def if_captures_view(f):
    """What a branch reads is a view of the result that is recomputed: the view has to be made again, too."""
    f.op("Exp", ["x"], "skip")
    f.constant("sizes", [2, 512], np.int64)
    f.op("Reshape", ["skip", "sizes"], "view")
    mean = f.pressure("view")
    f.constant("zero", 0)
    f.op("Greater", [mean, "zero"], "yes")
    shape = [2, 512]
    f.op(
        "If",
        ["yes"],
        "y",
        then_branch=branch("then", "Mul", ["view", mean], shape),
        else_branch=branch("else", "Sub", ["view", mean], shape),
    )
    f.output("y", shape)
    f.state(recomputed=["skip", "view"])


@feature
def if_nested(f):
    """Captures through two levels, and local names that a careless rename would hit or take."""
    f.op("Exp", ["x"], "skip")
    f.op("Neg", ["skip"], "other")
    mean = f.pressure("other")
    f.constant("zero", 0)
    f.op("Greater", [mean, "zero"], "yes")
    # The name that a clone of `skip` would get is taken by a value of a branch.
    inner_nodes = [
        helper.make_node("Mul", ["skip", "other"], ["skip__remat1"], name="skip__remat1"),
        helper.make_node("Add", ["skip__remat1", "local"], ["inner.then.out"]),
    ]
    inner_then = body("inner.then", inner_nodes, [], [value("inner.then.out")])
    inner = helper.make_node(
        "If", ["yes"], ["inner.y"], then_branch=inner_then, else_branch=branch("inner.else", "Neg", ["other"])
    )
    outer_nodes = [helper.make_node("Abs", ["other"], ["local"]), inner]
    outer_then = body("outer.then", outer_nodes, [], [value("inner.y")])
    f.op("If", ["yes"], "y", then_branch=outer_then, else_branch=branch("outer.else", "Identity", ["skip"]))
    f.output("y")
    f.state(recomputed=["skip", "other"], never=["y"])


def loop_ends(condition):
    """The nodes and outputs every loop body has: run on."""
    return helper.make_node("Identity", [condition], [f"{condition}.out"])


@feature
def loop_captures(f):
    """A loop body reads a result that is recomputed, carries a value and collects another."""
    f.op("Exp", ["x"], "skip")
    mean = f.pressure("skip")
    f.constant("count", 3, np.int64)
    nodes = [
        loop_ends("go"),
        helper.make_node("Mul", ["carried", "skip"], ["next"]),
        helper.make_node("ReduceMax", ["next"], ["largest"], keepdims=0),
    ]
    inputs = [value("i", [], INT64), value("go", [], BOOL), value("carried")]
    outputs = [value("go.out", [], BOOL), value("next"), value("largest", [])]
    f.op("Sub", ["x", mean], "start")
    f.op("Loop", ["count", "", "start"], ["y", "all.largest"], body=body("body", nodes, inputs, outputs))
    f.output("y")
    f.output("all.largest", [3])
    f.state(recomputed=["skip"], never=["y"])


@feature
def loop_shadows(f):
    """The body's own input has the name of the result that is recomputed; a branch reads it and an outer value."""
    f.op("Exp", ["x"], "skip")
    f.op("Neg", ["skip"], "other")
    mean = f.pressure("other")
    f.constant("count", 2, np.int64)
    nodes = [
        loop_ends("go"),
        helper.make_node(
            "If",
            ["go"],
            ["next"],
            then_branch=branch("then", "Add", ["skip", "other"]),
            else_branch=branch("else", "Identity", ["skip"]),
        ),
    ]
    inputs = [value("i", [], INT64), value("go", [], BOOL), value("skip")]
    outputs = [value("go.out", [], BOOL), value("next")]
    f.op("Loop", ["count", "", "skip"], "looped", body=body("body", nodes, inputs, outputs))
    f.output(f.finish("looped", mean))
    f.state(recomputed=["skip", "other"], never=["looped"])


@feature
def scan_captures(f):
    """The body of a `Scan` over rows reads the whole of a result that is recomputed."""
    f.op("Exp", ["x"], "skip")
    mean = f.pressure("skip")
    nodes = [
        helper.make_node("ReduceMax", ["skip", "first"], ["largest"], keepdims=0),
        helper.make_node("Mul", ["row", "largest"], ["row.out"]),
        helper.make_node("Add", ["sum", "row"], ["sum.out"]),
    ]
    inputs = [value("sum", [256]), value("row", [256])]
    outputs = [value("sum.out", [256]), value("row.out", [256])]
    f.constant("first", [0], np.int64)
    f.constant("nothing", np.zeros(256))
    scanned = body("body", nodes, inputs, outputs)
    f.op("Scan", ["nothing", "x"], ["total", "rows"], body=scanned, num_scan_inputs=1)
    f.output(f.finish("total", "rows", mean))
    f.state(recomputed=["skip"], never=["total"])


@feature
def sequence_map_captures(f):
    """The body of a `SequenceMap` reads a result that is recomputed. The size of what it returns has to be stated."""
    f.op("Exp", ["x"], "skip")
    f.op("Gather", ["x", f.constant("first", [0], np.int64)], "row", axis=0)
    f.op("SequenceConstruct", ["row", "row"], "rows")
    mean = f.pressure("skip")
    nodes = [helper.make_node("Mul", ["element", "skip"], ["element.out"])]
    mapped = body("body", nodes, [value("element", [1, 256])], [value("element.out")])
    f.op("SequenceMap", ["rows"], "products", body=mapped)
    f.op("SequenceAt", ["products", f.constant("one", 1, np.int64)], "product")
    f.output(f.finish("product", mean))
    f.state(recomputed=["skip"], never=["products"], sizes={"products": 8192, "product": 4096})


# Functions


def function(name, inputs, outputs, nodes, attributes=(), domains=()):
    imports = [helper.make_opsetid("", 20), *(helper.make_opsetid(d, 1) for d in domains)]
    return helper.make_function("test.functions", name, inputs, outputs, nodes, imports, list(attributes))


@feature
def function_calls(f):
    """A function of the model, with an attribute, called by another function and several times."""
    scale = helper.make_node("Constant", [], ["scale"])
    scale.attribute.append(
        onnx.AttributeProto(name="value_float", type=onnx.AttributeProto.FLOAT, ref_attr_name="alpha")
    )
    nodes = [
        scale,
        helper.make_node("Mul", ["v", "scale"], ["scaled"]),
        helper.make_node("Sigmoid", ["scaled"], ["s"]),
        helper.make_node("Mul", ["v", "s"], ["y"]),
    ]
    twice = [
        helper.make_node("Swish", ["v"], ["once"], domain="test.functions", alpha=1.5),
        helper.make_node("Swish", ["once"], ["y"], domain="test.functions", alpha=0.5),
    ]
    f.functions = [
        function("Swish", ["v"], ["y"], nodes, ["alpha"]),
        function("Twice", ["v"], ["y"], twice, domains=["test.functions"]),
    ]
    f.op("Swish", ["x"], "first", domain="test.functions", alpha=2.0)
    f.op("Twice", ["first"], "skip", domain="test.functions")
    mean = f.pressure("skip")
    f.op("Swish", ["skip"], "last", domain="test.functions", alpha=0.25)
    f.output(f.finish("last", mean))
    f.state(recomputed=["skip"])


@feature
def function_random(f):
    """A call of a function that draws random numbers is never repeated, what follows from it is."""
    draw = [helper.make_node("RandomUniformLike", ["v"], ["noise"], seed=3.0, dtype=FLOAT)]
    draw.append(helper.make_node("Add", ["v", "noise"], ["y"]))
    f.functions = [function("Blur", ["v"], ["y"], draw)]
    f.constant("first", [0], np.int64)
    f.op("Gather", ["x", "first"], "row", axis=0)
    f.op("Blur", ["row"], "drawn", domain="test.functions")
    f.op("Concat", ["drawn"] * 4, "tall", axis=0)
    f.op("Exp", ["tall"], "skip")
    f.output(f.finish("skip", f.pressure("skip")))
    f.state(recomputed=["tall", "skip"], never=["drawn"])


# Random ops


@feature
def dropout_training(f):
    """Dropout that drops, with a seed: never repeated; what is made of its result and of its mask is."""
    f.constant("first", [0], np.int64)
    f.constant("ratio", 0.5)
    f.constant("training", True, np.bool_)
    f.op("Gather", ["x", "first"], "row", axis=0)
    f.op("Dropout", ["row", "ratio", "training"], ["dropped", "mask"], seed=7)
    f.op("Concat", ["dropped"] * 4, "tall", axis=0)
    f.op("Exp", ["tall"], "skip")
    mean = f.pressure("skip")
    f.op("Cast", ["mask"], "mask.float", to=FLOAT)
    f.output(f.finish("skip", mean, "mask.float"))
    f.state(recomputed=["tall", "skip"], never=["dropped"])


@feature
def random_operators(f):
    """The seeded random operators: none is repeated."""
    f.constant("first", [0], np.int64)
    f.op("Gather", ["x", "first"], "row", axis=0)
    f.op("RandomNormalLike", ["row"], "normal", seed=1.0, dtype=FLOAT)
    f.op("RandomUniform", [], "uniform", shape=[1, 256], seed=2.0)
    f.op("Bernoulli", ["uniform"], "coin", seed=4.0)
    f.op("Concat", ["normal", "uniform", "coin"] * 3, "tall", axis=0)
    f.op("Exp", ["tall"], "skip")
    f.output(f.finish("skip", f.pressure("skip")), [9, 256])
    f.state(recomputed=["tall", "skip"], never=["normal", "uniform", "coin"])


# Types other than float tensors


@feature
def sequences(f):
    """A sequence is recomputed with its elements; it is long-lived as a whole."""
    f.op("Exp", ["x"], "a")
    f.op("Neg", ["x"], "b")
    f.op("SequenceConstruct", ["a", "b"], "pair")
    f.constant("one", 1, np.int64)
    f.op("SequenceInsert", ["pair", "x", "one"], "triple")
    f.op("SequenceAt", ["triple", "one"], "middle")
    mean = f.pressure("middle")
    f.op("SequenceErase", ["triple", "one"], "back")
    f.op("ConcatFromSequence", ["back"], "joined", axis=0)
    f.op("SequenceLength", ["triple"], "length")
    f.op("SplitToSequence", ["joined"], "rows", axis=0, keepdims=0)
    f.op("SequenceAt", ["rows", "one"], "row")
    f.output(f.finish("joined", "row", mean), [8, 256])
    f.output("length", [], INT64)
    f.state(recomputed=["triple"])


@feature
def sequence_output(f):
    """A sequence that is an output of the model and read later."""
    f.op("Exp", ["x"], "skip")
    f.op("Gather", ["x", f.constant("first", [0], np.int64)], "row", axis=0)
    f.op("SequenceConstruct", ["row", "row"], "pair")
    mean = f.pressure("skip")
    f.op("ConcatFromSequence", ["pair"], "joined", axis=0)
    f.op("ReduceMax", ["joined"], "largest", keepdims=0)
    f.output(f.finish("skip", "largest", mean))
    f.outputs.append(helper.make_tensor_sequence_value_info("pair", FLOAT, [1, 256]))
    f.state(recomputed=["skip"])


@feature
def optionals(f):
    """An optional value is recomputed with what it holds."""
    f.op("Exp", ["x"], "a")
    f.op("Optional", ["a"], "maybe")
    f.op("OptionalHasElement", ["maybe"], "there")
    mean = f.pressure("x")
    f.op("OptionalGetElement", ["maybe"], "skip")
    f.output(f.finish("skip", mean))
    f.output("there", [], BOOL)
    f.state(recomputed=["a", "maybe"])


@feature
def strings(f):
    """Strings made from numbers, joined and compared."""
    f.op("Gather", ["x", f.constant("first", [0], np.int64)], "row", axis=0)
    f.op("Cast", ["row"], "rounded", to=TensorProto.INT32)
    f.op("Cast", ["rounded"], "text", to=TensorProto.STRING)
    f.constants.append(helper.make_tensor("suffix", TensorProto.STRING, [1], [b"0"]))
    f.op("StringConcat", ["text", "suffix"], "skip")
    f.op("Equal", ["skip", "suffix"], "same")
    mean = f.pressure("x")
    f.op("Cast", ["skip"], "number", to=FLOAT)
    f.output(f.finish("number", mean), [1, 256])
    f.output("same", [1, 256], BOOL)
    f.state(recomputed=["skip"])


@feature
def half_precision(f):
    """Parts in float16 and bfloat16."""
    f.op("Cast", ["x"], "x.half", to=TensorProto.FLOAT16)
    f.op("Sigmoid", ["x.half"], "skip.half")
    f.op("Cast", ["x"], "skip.brain", to=TensorProto.BFLOAT16)
    f.op("Cast", ["skip.half"], "early", to=FLOAT)
    mean = f.pressure("early")
    f.op("Add", ["skip.half", "x.half"], "sum.half")
    f.op("Cast", ["sum.half"], "a", to=FLOAT)
    f.op("Cast", ["skip.brain"], "b", to=FLOAT)
    f.output(f.finish("a", "b", mean))
    f.state(recomputed=["skip.half"])


def quantization(f):
    f.constant("scale", 0.05)
    f.constant("zero_point", 128, np.uint8)
    f.constant("weight.scale", 0.02)
    f.constant("weight.zero_point", 0, np.int8)
    weights = np.arange(4 * 4).reshape(4, 4, 1, 1) % 7 - 3
    f.constant("weight", weights, np.int8)


@feature
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


@feature
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


# Several results


@feature
def split(f):
    """One of two results is needed again: the recompute makes both."""
    f.op("Exp", ["x"], "e")
    f.op("Concat", ["e", "x"], "joined", axis=0)
    f.op("Split", ["joined"], ["skip", "rest"], num_outputs=2, axis=0)
    mean = f.pressure("rest")
    f.output(f.finish("skip", mean))
    f.state(recomputed=["skip"])


@feature
def top_k(f):
    """The indices are needed again, the values are not."""
    f.constant("k", [256], np.int64)
    f.op("TopK", ["x", "k"], ["values", "skip"], axis=1)
    mean = f.pressure("values")
    f.op("Cast", ["skip"], "places", to=FLOAT)
    f.output(f.finish("places", mean))
    f.state(recomputed=["values"])


@feature
def layer_norm(f):
    """Mean and inverse deviation are results beside the normalized value; the middle one is left out."""
    f.constant("scale", np.linspace(0.5, 1.5, 256))
    f.op("LayerNormalization", ["x", "scale"], ["skip", "", "deviation"], axis=1)
    mean = f.pressure("skip")
    f.output(f.finish("skip", mean, "deviation"))
    f.state(recomputed=["skip"])


@feature
def batch_norm_training(f):
    """Training mode updates the running statistics where they lie: never repeated, what is made of its result is."""
    for name, start in (("scale", 0.5), ("bias", -0.5), ("running.mean", 0.0), ("running.var", 1.0)):
        f.constant(name, np.linspace(start, start + 0.5, 4))
    f.op("MaxPool", ["x"], "small", kernel_shape=[2, 2], strides=[2, 2])
    operands = ["small", "scale", "bias", "running.mean", "running.var"]
    f.op("BatchNormalization", operands, ["normal", "new.mean", "new.var"], training_mode=1)
    f.op("Concat", ["normal"] * 4, "tall", axis=0)
    f.op("Exp", ["tall"], "skip")
    f.output(f.finish("skip", f.pressure("skip")), [4, 4, 8, 8])
    f.output("new.mean", [4])
    f.output("new.var", [4])
    f.state(recomputed=["tall", "skip"], never=["normal"])


@feature
def batch_norm(f):
    """Inference mode only reads its statistics: recomputed like any other operator."""
    for name, start in (("scale", 0.5), ("bias", -0.5), ("mean", 0.0), ("var", 1.0)):
        f.constant(name, np.linspace(start, start + 0.5, 4))
    f.op("BatchNormalization", ["x", "scale", "bias", "mean", "var"], "skip")
    f.output(f.finish("skip", f.pressure("skip")), IMAGE)
    f.state(recomputed=["skip"])


@feature
def max_pool_indices(f):
    """Values and indices of a pooling; both are needed again by its inverse."""
    f.op("MaxPool", ["x"], ["values", "places"], kernel_shape=[1, 1], strides=[1, 1])
    mean = f.pressure("values")
    f.op("MaxUnpool", ["values", "places"], "spread", kernel_shape=[1, 1], strides=[1, 1])
    f.output(f.finish("spread", mean), IMAGE)
    f.state(recomputed=["values"])


@feature
def lstm(f):
    """Absent operands in the middle, and of three results only the second is needed again."""
    random = np.random.default_rng(3)
    f.constant("w", random.standard_normal((1, 32, 16)) / 4)
    f.constant("r", random.standard_normal((1, 32, 8)) / 4)
    f.constant("start", np.full((1, 1, 8), 0.1))
    f.constant("sizes", [64, 1, 16], np.int64)
    f.op("Exp", ["x"], "e")
    f.op("Reshape", ["e", "sizes"], "steps")
    f.op("LSTM", ["steps", "w", "r", "", "", "start"], ["", "last", "cell"], hidden_size=8)
    mean = f.pressure("e")
    f.op("ReduceMax", ["last"], "largest", keepdims=0)
    f.op("ReduceMax", ["cell"], "largest.cell", keepdims=0)
    f.output(f.finish("e", "largest", "largest.cell", mean))
    f.state(recomputed=["e"])


# Views


@feature
def views(f):
    """Views of views, one of them through a copy, of a base that is recomputed: all of them are made again."""
    f.op("Exp", ["x"], "base")
    f.constant("cube", [4, 16, 16], np.int64)
    f.constant("front", [0], np.int64)
    f.op("Reshape", ["base", "cube"], "cubed")
    f.op("Unsqueeze", ["cubed", "front"], "boxed")
    f.op("Transpose", ["boxed"], "turned", perm=[0, 1, 3, 2])
    f.op("Flatten", ["turned"], "flat", axis=2)
    f.op("Squeeze", ["boxed", "front"], "again")
    mean = f.pressure("again")
    f.op("Identity", ["again"], "same")
    f.op("Mul", ["same", "same"], "square")
    f.op("Squeeze", ["turned", "front"], "turned.cube")
    f.output(f.finish("square", "turned.cube", mean), [4, 16, 16])
    f.output("flat", SHAPE)
    f.state(recomputed=["base", "again"])


@feature
def reshape_to_computed_shape(f):
    """The shape of a view is computed from the shape of a result that is recomputed."""
    f.op("Exp", ["x"], "base")
    f.constant("second", 1, np.int64)
    f.constant("minus one", [-1], np.int64)
    f.constant("front", [0], np.int64)
    f.op("Shape", ["base"], "shape")
    f.op("Gather", ["shape", "second"], "width", axis=0)
    f.op("Unsqueeze", ["width", "front"], "width.1d")
    f.op("Concat", ["width.1d", "minus one"], "target", axis=0)
    f.op("Reshape", ["base", "target"], "view")
    mean = f.pressure("view")
    f.op("Neg", ["view"], "negative")
    f.output(f.finish("negative", mean), [256, 4])
    f.state(recomputed=["base", "view"])


@feature
def constant_nodes(f):
    """Operands from `Constant` nodes instead of initializers: nothing to recompute about them."""
    shape = numpy_helper.from_array(np.array([2, 512], np.int64), "value")
    f.op("Constant", [], "sizes", value=shape)
    f.op("Constant", [], "two", value_float=2.0)
    f.op("Mul", ["x", "two"], "double")
    f.op("Reshape", ["double", "sizes"], "view")
    mean = f.pressure("view")
    f.op("Constant", [], "three", value_float=3.0)
    f.op("Mul", ["view", "three"], "six")
    f.output(f.finish("six", mean), [2, 512])
    f.state(recomputed=["double"])


# Graph inputs and outputs


@feature
def output_read_later(f):
    """A graph output stays resident; what is made of it early is recomputed from it."""
    f.op("Exp", ["x"], "kept")
    f.op("Neg", ["kept"], "skip")
    f.output(f.finish("skip", "kept", f.pressure("skip")))
    f.output("kept")
    f.state(recomputed=["skip"])


@feature
def output_is_view(f):
    """A graph output that is a view of a result that is recomputed: the runtime copies it."""
    f.op("Exp", ["x"], "base")
    f.constant("sizes", [2, 512], np.int64)
    f.op("Reshape", ["base", "sizes"], "returned")
    f.op("Identity", ["base"], "also.returned")
    mean = f.pressure("base")
    f.op("Neg", ["returned"], "negative")
    f.op("Mul", ["base", mean], "late")
    f.output("returned", [2, 512])
    f.output("also.returned")
    f.output("negative", [2, 512])
    f.output("late")
    f.state(recomputed=["base"])


@feature
def output_is_source(f):
    """A graph input and an initializer are graph outputs, too."""
    f.constant("weight", np.linspace(-1, 1, 256))
    f.op("Mul", ["x", "weight"], "skip")
    f.output(f.finish("skip", f.pressure("skip")))
    f.output("x")
    f.output("weight", [256])
    f.state(recomputed=["skip"])


@feature
def output_twice(f):
    """One result stands twice among the outputs."""
    f.op("Exp", ["x"], "skip")
    f.finish("skip", f.pressure("skip"))
    f.output("y")
    f.output("y")
    f.state(recomputed=["skip"])


@feature
def output_and_intermediate(f):
    """Of two results one is a graph output, the other is needed again: the recompute makes a twin of the first."""
    f.constant("sizes", [1, 4], np.int64)
    f.constant("five", np.ones((5, 1)))
    f.op("Gather", ["x", f.constant("first", [0], np.int64)], "row", axis=0)
    f.op("Mul", ["row", "five"], "rows")
    f.op("Split", ["rows", "sizes"], ["returned", "skip"], axis=0)
    f.output(f.finish("skip", f.pressure("skip")))
    f.output("returned", [1, 256])
    f.state(recomputed=["returned"])


@feature
def overridable_initializer(f):
    """An initializer that is a graph input as well: a default that the caller may replace."""
    f.constant("factor", np.linspace(-1, 1, 256))
    f.inputs.append(value("factor", [256]))
    f.op("Mul", ["x", "factor"], "skip")
    f.output(f.finish("skip", f.pressure("skip")))
    f.state(recomputed=["skip"])


# Sizes and weights


@feature
def dynamic_batch(f):
    """A named batch dimension, and a shape computed from it."""
    f.inputs = [value("x", ["batch", 256])]
    f.op("Exp", ["x"], "base")
    f.op("Shape", ["base"], "batch.1d", start=0, end=1)
    f.constant("square", [16, 16], np.int64)
    f.op("Concat", ["batch.1d", "square"], "target", axis=0)
    f.op("Reshape", ["base", "target"], "view")
    mean = f.pressure("view")
    f.op("Neg", ["view"], "negative")
    f.output(f.finish("negative", mean), ["batch", 16, 16])
    f.state(recomputed=["base"], dims={"batch": 4})


@feature
def external_data(f):
    """Weights in a file beside the model."""
    f.constant("weight", np.linspace(-1, 1, 256))
    f.keep_outside(f.constants[-1])
    f.op("Mul", ["x", "weight"], "skip")
    f.output(f.finish("skip", f.pressure("skip")))
    f.state(recomputed=["skip"])


@feature
def sparse_initializer(f):
    """A weight in coordinate form."""
    values = numpy_helper.from_array(np.array([1.5, -2.0, 0.25], np.float32), "weight")
    indices = numpy_helper.from_array(np.array([3, 70, 200], np.int64), "weight.indices")
    f.sparse.append(helper.make_sparse_tensor(values, indices, [256]))
    f.op("Add", ["x", "weight"], "shifted")
    f.op("Exp", ["shifted"], "skip")
    f.output(f.finish("skip", f.pressure("skip")))
    f.state(recomputed=["shifted", "skip"])


@feature
def zero_size(f):
    """Tensors without elements, alive for long."""
    f.constant("none", [0], np.int64)
    f.op("Slice", ["x", "none", "none"], "empty")
    f.op("Exp", ["empty"], "empty.exp")
    f.op("Exp", ["x"], "skip")
    mean = f.pressure("skip")
    f.op("Concat", ["skip", "empty.exp"], "joined", axis=0)
    f.output(f.finish("joined", mean))
    f.output("empty.exp", [0, 256])
    f.state(recomputed=["skip"])


# The form of nodes


@feature
def absent_names(f):
    """Operands and results that are left out, in the middle and at the end."""
    f.constant("top", 1.5)
    f.constant("scales", [1, 2])
    f.op("Clip", ["x", "", "top"], "clipped")
    f.op("Resize", ["clipped", "", "scales"], "wide", mode="nearest")
    f.op("Dropout", ["wide", "", ""], ["skip", ""])
    f.output(f.finish("skip", f.pressure("skip")), [4, 512])
    f.state(recomputed=["clipped", "wide", "skip"])


@feature
def unnamed_nodes(f):
    """Nodes without names; one named node has the name that an unnamed one would get."""
    f.op("Exp", ["x"], "e", name="")
    f.op("Neg", ["e"], "n", name="")
    f.op("Tanh", ["n"], "skip", name="Neg_1")
    f.output(f.finish("skip", f.pressure("skip")))
    f.state(recomputed=["Neg_1"])


@feature
def names_like_clones(f):
    """Nodes, values and an input have the names that clones would get."""
    f.inputs.append(value("a__remat1"))
    f.op("Exp", ["x"], "a", name="a")
    f.op("Neg", ["a"], "a__remat2", name="a__remat1")
    f.op("Mul", ["a", "a__remat2"], "skip", name="skip")
    mean = f.pressure("skip")
    f.op("Add", ["a", "a__remat1"], "skip__remat1", name="skip__remat1_1")
    f.output(f.finish("skip", "skip__remat1", mean))
    f.state(recomputed=["skip"])


@feature
def contrib_operators(f):
    """Operators of the runtime's own domain."""
    own = {"domain": "com.microsoft"}
    f.constant("square", np.eye(256)[:8] / 2)
    f.constant("bias", np.linspace(-1, 1, 8))
    f.op("FusedMatMul", ["x", "square"], "product", transB=1, alpha=0.5, **own)
    f.op("BiasGelu", ["product", "bias"], "curved", **own)
    f.op("Gelu", ["x"], "skip", **own)
    f.op("QuickGelu", ["skip"], "quick", alpha=1.5, **own)
    mean = f.pressure("quick")
    f.op("ReduceMax", ["curved"], "largest", keepdims=0)
    f.output(f.finish("skip", "quick", "largest", mean))
    f.state(recomputed=["skip", "quick"])


@feature
def newer_operators(f):
    """Operators of opset 23 in a file of IR version 11."""
    f.ir_version, f.opsets[""] = 11, 23
    f.constant("scale", np.linspace(0.5, 1.5, 256))
    f.op("RMSNormalization", ["x", "scale"], "normal")
    f.op("Gelu", ["normal"], "skip", approximate="tanh")
    f.output(f.finish("skip", f.pressure("skip")))
    f.state(recomputed=["normal", "skip"])


@feature
def unsorted(f):
    """Nodes in reverse order. The standard forbids it, the runtime takes it; what is written is sorted."""
    f.op("Exp", ["x"], "skip")
    f.output(f.finish("skip", f.pressure("skip")))
    f.state(recomputed=["skip"])
    f.nodes.reverse()


IMAGES = {"quantized", "quantize_dequantize", "batch_norm", "batch_norm_training", "max_pool_indices"}


def write(build, folder):
    name = build.__name__
    f = Feature(name, IMAGE if name in IMAGES else SHAPE)
    build(f)
    model = f.proto()
    path = folder / f"{name}.onnx"
    if f.outside:
        path.with_suffix(".bin").write_bytes(f.outside)
    path.write_bytes(model.SerializeToString(deterministic=True))
    if name != "unsorted":
        # Shape inference of `onnx` knows sparse initializers in `Constant` only.
        onnx.checker.check_model(path, full_check=name != "sparse_initializer")
    print(f"{path}: {len(f.nodes)} nodes, {path.stat().st_size} bytes")


if __name__ == "__main__":
    target = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "features"
    target.mkdir(exist_ok=True)
    for each in FEATURES:
        write(each, target)
