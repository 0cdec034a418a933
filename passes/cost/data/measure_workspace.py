#!/usr/bin/env python3
"""Bytes that kernels of ONNX Runtime hold while they run, on top of operands and results: one-node models against the heap.

    measure_workspace.py > workspace.csv
    measure_workspace.py NGramRepeatBlock      lines of this operator only

CPU, one thread, optimizers off, memory arena and pattern
off. Columns: domain, operator, operands (`*`: a weight of the file), attributes, results, their bytes, the workspace, and
whether the first result was written over an operand that nobody else needed (the position of the operand).
"""
import ctypes, os, pathlib, sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper as h

ort.set_default_logger_severity(4)
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "test" / "python"))
from meter import preloaded

if "LD_PRELOAD" not in os.environ:
    os.execve(sys.executable, [sys.executable, *sys.argv], preloaded())
heap = ctypes.CDLL(None)
heap.remat_heap_live.restype = heap.remat_heap_peak.restype = ctypes.c_int64
WANTED = sys.argv[1:]
TYPES = {"f32": (1, np.float32), "f64": (11, np.float64), "f16": (10, np.float16), "i64": (7, np.int64), "i32": (6, np.int32), "b": (9, np.bool_), "u8": (2, np.uint8), "i8": (3, np.int8)}
# Operators that need a later opset.
NEWER = ("RMSNormalization", "Attention", "RotaryEmbedding")
# What the runtime itself keeps of a run with one node, and per graph input.
FRAME, PER_INPUT = 300, 500


def shaped(array):
    return "x".join(map(str, array.shape)) if isinstance(array, np.ndarray) else "?"


class Operand:
    """`f32[2,3]`, with `*` for a weight and `=1,2` for given values."""

    def __init__(self, text):
        self.const = "*" in text or "=" in text
        head, _, values = text.replace("*", "").partition("=")
        kind, _, dims = head.partition("[")
        self.kind, self.shape = kind, [int(d) for d in dims.rstrip("]").split(",") if d]
        self.text = f"{kind}[{'x'.join(map(str, self.shape))}]" + ("*" if self.const else "")
        code, dtype = TYPES[kind]
        if values:
            self.data = np.array([float(v) for v in values.split(",")]).astype(dtype).reshape(self.shape)
        elif "f" in kind:
            self.data = np.random.default_rng(0).uniform(0.1, 1, self.shape).astype(dtype)
        elif kind == "b":
            self.data = np.random.default_rng(0).integers(0, 2, self.shape).astype(dtype)
        else:
            self.data = np.zeros(self.shape, dtype)


def model(op, domain, operands, attributes, results, chain):
    """The node alone; with `chain`, operand number `chain` is an intermediate, and only the shape of the result is returned."""
    ins, nodes, inits, names = [], [], [], []
    for i, o in enumerate(operands):
        if o is None:
            names.append("")
            continue
        name = f"x{i}"
        if o.const:
            inits.append(onnx.numpy_helper.from_array(o.data, name))
        else:
            ins.append(h.make_tensor_value_info(name, TYPES[o.kind][0], o.shape))
        if chain == i:
            nodes.append(h.make_node("Abs", [name], ["made"]))
            name = "made"
        names.append(name)
    outs = [f"y{i}" for i in range(results)]
    nodes.append(h.make_node(op, names, outs, domain=domain, **attributes))
    if chain is None:
        returned = [onnx.ValueInfoProto(name=o) for o in outs]
    else:
        nodes.append(h.make_node("Shape", [outs[0]], ["s"]))
        returned = [onnx.ValueInfoProto(name="s")]
    g = h.make_graph(nodes, "g", ins, returned, inits)
    opsets = [h.make_opsetid("", 23 if op in NEWER and not domain else 21), h.make_opsetid("com.microsoft", 1), h.make_opsetid("com.microsoft.nchwc", 1)]
    return h.make_model(g, opset_imports=opsets, ir_version=10)


def peak(m, operands):
    so = ort.SessionOptions()
    so.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    so.enable_cpu_mem_arena = so.enable_mem_pattern = so.enable_mem_reuse = False
    so.intra_op_num_threads = 1
    s = ort.InferenceSession(m.SerializeToString(), so, providers=["CPUExecutionProvider"])
    feed = {f"x{i}": o.data for i, o in enumerate(operands) if o is not None and not o.const}
    s.run(None, feed)
    heap.remat_heap_reset()
    before = heap.remat_heap_live()
    out = s.run(None, feed)
    return heap.remat_heap_peak() - before - FRAME - PER_INPUT * len(feed), out


def held(arrays):
    return sum((a.nbytes + 63) // 64 * 64 + 8 + 260 for a in arrays if isinstance(a, np.ndarray))


def measure(op, operands, attributes=None, results=1, domain=""):
    if WANTED and op not in WANTED:
        return
    operands = [Operand(o) if o else None for o in operands]
    attributes = attributes or {}
    try:
        top, out = peak(model(op, domain, operands, attributes, results, None), operands)
    except Exception as error:
        print(f"{domain}:{op} {[o.text if o else '' for o in operands]}: {str(error)[:150]}", file=sys.stderr)
        return
    workspace = max(0, top - held(out))
    over = ""
    sizes = [o.data.nbytes if o else 0 for o in operands]
    for i, o in enumerate(operands):
        if o is None or o.const or o.kind == "b" or sizes[i] < 20000 or sizes[i] != out[0].nbytes:
            continue
        try:
            chained, _ = peak(model(op, domain, operands, attributes, results, i), operands)
        except Exception:
            continue
        if chained < workspace + sizes[i] + held(out) - sizes[i] // 2:
            over = i
            break
    def text(value):
        return "/".join(map(str, value)) if isinstance(value, list) else str(value).replace(",", "/")

    fields = [
        domain,
        op,
        " ".join(o.text if o else "-" for o in operands),
        ";".join(f"{name}={text(value)}" for name, value in attributes.items()),
        " ".join(shaped(a) for a in out),
        sum(a.nbytes for a in out if isinstance(a, np.ndarray)),
        workspace if workspace > 3000 else 0,
        over,
    ]
    print(",".join(map(str, fields)), flush=True)


MS, NC = "com.microsoft", "com.microsoft.nchwc"


def convolutions():
    for dtype in ("f32", "f16"):
        for n, c, hw, k, f, g, s, d, p in [
            (1, 16, 32, 3, 32, 1, 1, 1, 1), (4, 16, 32, 3, 32, 1, 1, 1, 1), (1, 16, 32, 3, 32, 4, 1, 1, 1), (4, 64, 8, 3, 256, 1, 1, 1, 1),
            (1, 64, 8, 3, 256, 1, 1, 1, 1), (2, 32, 40, 1, 64, 1, 1, 1, 0), (2, 32, 40, 1, 64, 1, 2, 1, 0), (1, 32, 40, 1, 64, 1, 1, 1, 1), (2, 48, 40, 3, 48, 48, 1, 1, 1),
            (1, 48, 40, 5, 48, 48, 2, 1, 2), (2, 16, 40, 3, 24, 1, 1, 2, 2), (2, 3, 96, 7, 32, 1, 2, 1, 3), (1, 8, 64, 64, 300, 1, 1, 1, 0), (16, 32, 34, 32, 64, 1, 1, 1, 0), (1, 1, 40, 40, 16, 1, 1, 1, 0),
            (1, 256, 14, 3, 512, 1, 1, 1, 1), (8, 128, 7, 3, 512, 2, 1, 1, 1)]:
            attributes = {"group": g, "strides": [s, s], "dilations": [d, d], "pads": [p] * 4, "kernel_shape": [k, k]}
            measure("Conv", [f"{dtype}[{n},{c},{hw},{hw}]", f"{dtype}[{f},{c // g},{k},{k}]"], attributes)
            if dtype == "f32":
                measure("Conv", [f"{dtype}[{n},{c},{hw},{hw}]", f"{dtype}[{f},{c // g},{k},{k}]*", f"f32[{f}]*"], attributes)
    measure("Conv", ["f32[2,16,4000]", "f32[32,16,5]"], {"pads": [2, 2]})
    measure("Conv", ["f32[1,16,4000]", "f32[32,16,5]"], {"pads": [2, 2]})
    measure("Conv", ["f32[1,4,12,12,12]", "f32[8,4,3,3,3]"], {"pads": [1] * 6})
    measure("Conv", ["f32[2,4,12,12,12]", "f32[8,4,3,3,3]"], {"pads": [1] * 6})
    same = {"pads": [1] * 4, "kernel_shape": [3, 3]}
    for n in (1, 4):
        measure("FusedConv", [f"f32[{n},16,32,32]", "f32[16,16,3,3]", "f32[16]"], {**same, "activation": "Relu"}, 1, MS)
        measure("FusedConv", [f"f32[{n},16,32,32]", "f32[16,16,3,3]", "f32[16]", f"f32[{n},16,32,32]"], {**same, "activation": "Relu"}, 1, MS)
        measure("Conv", [f"f32[{n},16,32,32]", "f32[32,16,3,3]*"], same, 1, NC)
        measure("Conv", [f"f32[{n},16,32,32]", "f32[16,16,3,3]*", "f32[16]*", f"f32[{n},16,32,32]"], same, 1, NC)
        measure("Conv", [f"f32[{n},64,32,32]", "f32[128,64,1,1]*"], {"kernel_shape": [1, 1]}, 1, NC)
    measure("ReorderInput", ["f32[2,32,64,64]"], {}, 1, NC)
    measure("ReorderOutput", ["f32[2,32,64,64]"], {"channels": 32}, 1, NC)
    for dtype in ("f32",):
        for n, c, hw, k, f, g, s in [(1, 16, 32, 2, 8, 1, 2), (4, 16, 32, 2, 8, 1, 2), (2, 32, 16, 3, 16, 1, 1), (2, 32, 16, 3, 8, 4, 1), (2, 64, 32, 1, 32, 1, 1), (1, 8, 64, 4, 4, 1, 2)]:
            measure("ConvTranspose", [f"{dtype}[{n},{c},{hw},{hw}]", f"{dtype}[{c},{f},{k},{k}]"], {"strides": [s, s], "group": g})
            measure("ConvTranspose", [f"{dtype}[{n},{c},{hw},{hw}]", f"{dtype}[{c},{f},{k},{k}]*"], {"strides": [s, s], "group": g})
    for n in (1, 4):
        measure("ConvInteger", [f"u8[{n},16,32,32]", "u8[32,16,3,3]"], {"pads": [1] * 4})
        for g in (1, 16):
            q = [f"u8[{n},16,32,32]", "f32[]=0.1", "u8[]=0", f"i8[32,{16 // g},3,3]*", "f32[]=0.1", "i8[]=0", "f32[]=0.1", "u8[]=0"]
            measure("QLinearConv", q, {"pads": [1] * 4, "group": g})
        for k in (3, 5):
            q = [f"u8[{n},32,32,32]", "f32[]=0.1", "u8[]=0", f"i8[32,1,{k},{k}]*", "f32[]=0.1", "i8[]=0", "f32[]=0.1", "u8[]=0"]
            measure("QLinearConv", q, {"pads": [k // 2] * 4, "group": 32})
        measure("QLinearConv", [f"u8[{n},64,32,32]", "f32[]=0.1", "u8[]=0", "i8[32,64,1,1]*", "f32[]=0.1", "i8[]=0", "f32[]=0.1", "u8[]=0"])


def products():
    for dtype in ("f32", "f64", "f16"):
        for a, b in [("64,512", "512,256"), ("8,64,512", "512,256"), ("8,64,512", "8,512,256"), ("2,4,64,64", "2,4,64,64"), ("2,4,64,64", "4,64,64"), ("1,512", "512,2048"), ("2000,64", "64,8")]:
            measure("MatMul", [f"{dtype}[{a}]", f"{dtype}[{b}]"])
            measure("MatMul", [f"{dtype}[{a}]", f"{dtype}[{b}]*"])
    for ta in (0, 1):
        for tb in (0, 1):
            a, b = "512,64" if ta else "64,512", "256,512" if tb else "512,256"
            for c in ([], ["f32[256]"], ["f32[64,256]"]):
                measure("Gemm", [f"f32[{a}]", f"f32[{b}]"] + c, {"transA": ta, "transB": tb})
            measure("Gemm", [f"f32[{a}]", f"f32[{b}]*", "f32[256]*"], {"transA": ta, "transB": tb})
            measure("FusedGemm", [f"f32[{a}]", f"f32[{b}]", "f32[256]"], {"transA": ta, "transB": tb, "activation": "Relu"}, 1, MS)
            measure("FusedMatMul", [f"f32[4,{a}]", f"f32[4,{b}]"], {"transA": ta, "transB": tb, "alpha": 0.5}, 1, MS)
            measure("FusedMatMul", [f"f32[{a}]", f"f32[{b}]*"], {"transA": ta, "transB": tb}, 1, MS)
    measure("FusedMatMul", ["f32[64,4,512]", "f32[4,512,256]"], {"transBatchA": 1}, 1, MS)
    measure("FusedMatMul", ["f32[4,64,512]", "f32[512,4,256]"], {"transBatchB": 1}, 1, MS)
    measure("FusedMatMul", ["f32[512,4,64]", "f32[4,512,256]"], {"transBatchA": 1, "transA": 1}, 1, MS)
    measure("Gemm", ["f16[64,512]", "f16[512,256]", "f16[256]"])
    measure("MatMulInteger", ["u8[64,512]", "u8[512,256]"])
    measure("MatMulInteger", ["u8[64,512]", "u8[512,256]*"])
    measure("MatMulIntegerToFloat", ["u8[64,512]", "u8[512,256]", "f32[]=1", "f32[]=1"], {}, 1, MS)
    measure("DynamicQuantizeMatMul", ["f32[64,512]", "u8[512,256]*", "f32[]=1"], {}, 1, MS)
    measure("QLinearMatMul", ["u8[64,512]", "f32[]=0.1", "u8[]=0", "u8[512,256]", "f32[]=0.1", "u8[]=0", "f32[]=0.1", "u8[]=0"])
    measure("DynamicQuantizeLinear", ["f32[256,512]"], {}, 3)
    measure("QuantizeLinear", ["f32[256,512]", "f32[]=0.1", "u8[]=0"])
    measure("DequantizeLinear", ["u8[256,512]", "f32[]=0.1", "u8[]=0"])
    measure("QGemm", ["u8[64,512]", "f32[]=0.1", "u8[]=0", "u8[512,256]", "f32[]=0.1", "u8[]=0", "", "f32[]=0.1", "u8[]=0"], {}, 1, MS)
    for equation, a, b in [("bij,bjk->bik", "4,64,128", "4,128,32"), ("bhid,bhjd->bhij", "2,4,64,32", "2,4,64,32"), ("bihd,bjhd->bhij", "2,64,4,32", "2,64,4,32"), ("ij,jk->ik", "256,128", "128,64"), ("ij,kj->ik", "256,128", "64,128"), ("bij,k->bijk", "4,32,32", "32")]:
        measure("Einsum", [f"f32[{a}]", f"f32[{b}]"], {"equation": equation})
    measure("Einsum", ["f32[64,128,16]"], {"equation": "ijk->kij"})
    measure("Einsum", ["f32[64,128,16]"], {"equation": "ijk->ik"})


def shapes_and_moves():
    measure("Where", ["b[64,1,512]", "f32[64,16,512]", "f32[]"])
    measure("Where", ["b[64,16,512]", "f32[64,16,512]", "f32[64,16,512]"])
    measure("Where", ["b[64,16,512]", "i64[64,16,512]", "i64[1]"])
    measure("Where", ["b[16,512]", "f32[64,16,512]", "f32[64,16,512]"])
    measure("Where", ["b[64,16,512]", "f16[64,16,512]", "f16[64,16,512]"])
    measure("Where", ["b[64,16,512]", "f32[512]", "f32[1]"])
    for a, out in [("1,512,1", "64,512,16"), ("64,1", "64,4096"), ("1", "262144"), ("1,1,512", "64,8,512"), ("2,16,1,32,1", "2,16,2,32,2"), ("1,1,128,128", "8,4,128,128")]:
        dims = out.split(",")
        measure("Expand", [f"f32[{a}]", f"i64[{len(dims)}]={out}"])
        if len(dims) > 1:
            measure("Tile", [f"f32[{a}]", f"i64[{len(dims)}]=" + ",".join(str(int(o) // int(i)) for i, o in zip(a.split(","), dims))])
    measure("Expand", ["i64[64,1]", "i64[2]=64,4096"])
    measure("Expand", ["f16[64,1]", "i64[2]=64,4096"])
    measure("Expand", ["b[64,1]", "i64[2]=64,4096"])
    for data, index in [("1000,256", "1000,256"), ("1000,256", "100,256"), ("4000,64", "4000,1")]:
        measure("ScatterElements", [f"f32[{data}]", f"i64[{index}]", f"f32[{index}]"])
        measure("ScatterElements", [f"f32[{data}]", f"i32[{index}]", f"f32[{index}]"])
        measure("ScatterElements", [f"f32[{data}]", f"i64[{index}]", f"f32[{index}]"], {"axis": 1})
        measure("ScatterElements", [f"f32[{data}]", f"i64[{index}]", f"f32[{index}]"], {"reduction": "add"})
        measure("GatherElements", [f"f32[{data}]", f"i64[{index}]"])
    measure("ScatterND", ["f32[1000,256]", "i64[500,1]", "f32[500,256]"])
    measure("ScatterND", ["f32[1000,256]", "i64[500,1]", "f32[500,256]"], {"reduction": "add"})
    measure("ScatterND", ["f32[1000,256]", "i64[5000,2]", "f32[5000]"])
    measure("GatherND", ["f32[1000,256]", "i64[500,1]"])
    measure("GatherND", ["f32[1000,256]", "i64[50000,2]"])
    measure("Gather", ["f32[1000,256]", "i64[5000]"])
    measure("Gather", ["f32[100,2000]", "i64[500]"], {"axis": 1})
    measure("Pad", ["f32[4,16,64,64]", "i64[8]=0,0,2,2,0,0,2,2"])
    measure("Pad", ["f32[4,16,64,64]", "i64[8]=0,0,2,2,0,0,2,2"], {"mode": "reflect"})
    measure("Pad", ["f32[4,16,64,64]", "i64[8]=0,0,2,2,0,0,2,2"], {"mode": "edge"})
    for mode in ("nearest", "linear", "cubic"):
        measure("Resize", ["f32[2,16,64,64]", "", "f32[4]=1,1,2,2"], {"mode": mode})
        measure("Resize", ["f32[2,16,64,64]", "", "f32[4]=1,1,0.5,0.5"], {"mode": mode})
        measure("Resize", ["f32[2,16,64,64]", "", "f32[4]=1,1,0.5,0.5"], {"mode": mode, **({"antialias": 1} if mode != "nearest" else {})})
    measure("Resize", ["u8[2,64,64,16]", "", "f32[4]=1,2,2,1"], {"mode": "linear"})
    measure("Concat", ["f32[4,16,1024]", "f32[4,32,1024]"], {"axis": 1})
    measure("Split", ["f32[4,48,1024]", "i64[2]=16,32"], {"axis": 1}, 2)
    measure("Slice", ["f32[64,4096]", "i64[2]=0,0", "i64[2]=64,2000", "i64[2]=0,1"])
    measure("Slice", ["f32[64,4096]", "i64[1]=0", "i64[1]=4096", "i64[1]=1", "i64[1]=2"])
    for shape, perm in [("64,128,32", [0, 2, 1]), ("64,128,32", [1, 0, 2]), ("64,128,32", [2, 1, 0]), ("8,4,64,32", [0, 2, 1, 3]), ("8,4,64,32", [3, 1, 2, 0]), ("4,4,4,8,16,8", [0, 1, 3, 2, 4, 5])]:
        measure("Transpose", [f"f32[{shape}]"], {"perm": perm})
    measure("DepthToSpace", ["f32[2,64,64,64]"], {"blocksize": 2})
    measure("SpaceToDepth", ["f32[2,16,128,128]"], {"blocksize": 2})
    measure("ReverseSequence", ["f32[64,16,256]", "i64[16]"])
    measure("Col2Im", ["f32[1,144,1024]", "i64[2]=32,32", "i64[2]=3,3"], {"pads": [1] * 4})
    measure("Trilu", ["f32[8,256,256]"], {"upper": 0})
    measure("CumSum", ["f32[64,16,256]", "i64[]=1"])
    measure("OneHot", ["i64[4096]", "i64[]=64", "f32[2]=0,1"])
    measure("ConstantOfShape", ["i64[2]=512,512"])
    measure("Range", ["f32[]=0", "f32[]=200000", "f32[]=1"])
    measure("EyeLike", ["f32[512,512]"])
    for length in (64, 512):
        measure("NGramRepeatBlock", [f"i64[8,{length}]", "f32[8,50265]"], {"ngram_size": 3}, 1, MS)
    measure("Compress", ["f32[512,512]", "b[512]"], {"axis": 0})
    measure("NonZero", ["f32[512,512]"])
    measure("TopK", ["f32[512,1000]", "i64[1]=10"], {}, 2)
    measure("TopK", ["f32[512,1000]", "i64[1]=500"], {}, 2)
    measure("TopK", ["f32[1000,512]", "i64[1]=10"], {"axis": 0}, 2)
    measure("TopK", ["f32[1000,512]", "i64[1]=500"], {"axis": 0}, 2)
    measure("TopK", ["f32[2,200000]", "i64[1]=10"], {}, 2)
    measure("TopK", ["f32[2,200000]", "i64[1]=1000"], {}, 2)
    measure("Unique", ["f32[50000]"], {}, 4)
    measure("NonMaxSuppression", ["f32[1,2000,4]", "f32[1,4,2000]", "i64[1]=100", "f32[1]=0.5", "f32[1]=0.1"])
    measure("RoiAlign", ["f32[1,32,64,64]", "f32[50,4]", "i64[50]"], {"output_height": 7, "output_width": 7})
    measure("GridSample", ["f32[2,16,64,64]", "f32[2,64,64,2]"])
    for t in ("i64", "f16", "i32", "f64", "b"):
        code = {"i64": 7, "f16": 10, "i32": 6, "f64": 11, "b": 9}[t]
        measure("Cast", ["f32[512,512]"], {"to": code})
    measure("CastLike", ["f32[512,512]", "i32[1]"])
    measure("Dropout", ["f32[512,512]"], {}, 1)
    measure("Dropout", ["f32[512,512]", "f32[]=0.5", "b[]=1"], {}, 2)
    measure("Identity", ["f32[512,512]"])
    measure("Reshape", ["f32[512,512]", "i64[1]=262144"])


def elementwise():
    unary = "Abs Acos Acosh Asin Asinh Atan Atanh Ceil Celu Cos Cosh Elu Erf Exp Floor Gelu HardSigmoid HardSwish Hardmax LeakyRelu Log LogSoftmax Mish Neg Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh Softmax Softplus Softsign Sqrt Tan Tanh ThresholdedRelu LpNormalization Clip"
    for op in unary.split():
        measure(op, ["f32[512,512]"])
    measure("Gelu", ["f32[512,512]"], {"approximate": "tanh"})
    measure("Clip", ["f32[512,512]", "f32[]=0", "f32[]=1"])
    for dtype in ("f16", "f64"):
        for op in "Relu Sigmoid Tanh Exp Sqrt Softmax Gelu Erf".split():
            measure(op, [f"{dtype}[512,512]"])
    for op in "Add Sub Mul Div Pow Max Min Mean Sum PRelu Mod Equal Less Greater".split():
        attributes = {"fmod": 1} if op == "Mod" else {}
        measure(op, ["f32[512,512]", "f32[512,512]"], attributes)
        measure(op, ["f32[512,512]", "f32[512]"], attributes)
        if op not in ("PRelu",):
            measure(op, ["f32[512,1]", "f32[512]"], attributes)
    for op in ("Max", "Sum", "Mean"):
        measure(op, ["f32[512,512]"] * 4)
    for dtype in ("f16",):
        for op in "Add Mul".split():
            measure(op, [f"{dtype}[512,512]", f"{dtype}[512]"])
    for op in "And Or Xor".split():
        measure(op, ["b[512,512]", "b[512]"])
    measure("Not", ["b[512,512]"])
    for axis in (-1, 0, 1):
        measure("Softmax", ["f32[64,32,128]"], {"axis": axis})
        measure("LogSoftmax", ["f32[64,32,128]"], {"axis": axis})
        measure("Hardmax", ["f32[64,32,128]"], {"axis": axis})
    for op in "FastGelu BiasGelu QuickGelu Gelu".split():
        two = op in ("BiasGelu",)
        measure(op, ["f32[512,512]"] + (["f32[512]"] if two else []), {}, 1, MS)
    measure("FastGelu", ["f32[512,512]", "f32[512]"], {}, 1, MS)
    measure("SkipLayerNormalization", ["f32[8,64,512]", "f32[8,64,512]", "f32[512]", "f32[512]", "f32[512]"], {}, 1, MS)
    measure("SkipLayerNormalization", ["f32[8,64,512]", "f32[8,64,512]", "f32[512]*", "f32[512]*", "f32[512]*"], {}, 1, MS)
    measure("SkipLayerNormalization", ["f16[8,64,512]", "f16[8,64,512]", "f16[512]", "f16[512]"], {}, 1, MS)
    measure("SkipSimplifiedLayerNormalization", ["f32[8,64,512]", "f32[8,64,512]", "f32[512]"], {}, 1, MS)
    measure("EmbedLayerNormalization", ["i32[8,64]", "i32[8,64]", "f32[1000,512]", "f32[64,512]", "f32[2,512]", "f32[512]", "f32[512]"], {}, 2, MS)
    measure("RotaryEmbedding", ["f32[2,8,64,64]", "i64[2,64]", "f32[64,32]", "f32[64,32]"], {}, 1, MS)
    for dtype in ("f32", "f16", "f64"):
        measure("LayerNormalization", [f"{dtype}[8,64,512]", f"{dtype}[512]", f"{dtype}[512]"])
        measure("LayerNormalization", [f"{dtype}[8,64,512]", f"{dtype}[512]*", f"{dtype}[512]*"])
    measure("LayerNormalization", ["f32[8,64,512]", "f32[512]", "f32[512]"], {}, 3)
    measure("SimplifiedLayerNormalization", ["f32[8,64,512]", "f32[512]"])
    measure("RMSNormalization", ["f32[8,64,512]", "f32[512]"])
    measure("GroupNormalization", ["f32[4,32,64,64]", "f32[32]", "f32[32]"], {"num_groups": 8})
    measure("InstanceNormalization", ["f32[4,32,64,64]", "f32[32]", "f32[32]"])
    measure("MeanVarianceNormalization", ["f32[4,32,64,64]"])
    measure("LRN", ["f32[4,32,64,64]"], {"size": 5})
    bn = ["f32[8,32,64,64]"] + ["f32[32]"] * 4
    measure("BatchNormalization", bn)
    measure("BatchNormalization", bn, {"training_mode": 1}, 3)
    for op in ("MaxPool", "AveragePool", "LpPool"):
        measure(op, ["f32[4,16,64,64]"], {"kernel_shape": [2, 2], "strides": [2, 2]})
        measure(op, ["f32[4,16,64,64]"], {"kernel_shape": [3, 3], "pads": [1] * 4})
    measure("MaxPool", ["f32[4,16,64,64]"], {"kernel_shape": [2, 2], "strides": [2, 2]}, 2)
    for op in ("GlobalAveragePool", "GlobalMaxPool"):
        measure(op, ["f32[16,64,32,32]"])
    for op in ("MaxPool", "AveragePool"):
        measure(op, ["f32[4,16,64,64]"], {"kernel_shape": [2, 2], "strides": [2, 2]}, 1, NC)
    q, scale, zero = "u8[4,16,64,64]", "f32[]=0.1", "u8[]=0"
    for op in ("QLinearAdd", "QLinearMul"):
        measure(op, [q, scale, zero, q, scale, zero, scale, zero], {}, 1, MS)
    for op in ("QLinearSigmoid", "QLinearLeakyRelu"):
        measure(op, [q, scale + "*", zero + "*", scale + "*", zero + "*"], {}, 1, MS)
    measure("QLinearAveragePool", [q, scale, zero, scale, zero], {"kernel_shape": [2, 2], "strides": [2, 2]}, 1, MS)
    measure("QLinearGlobalAveragePool", [q, scale, zero, scale, zero], {}, 1, MS)
    measure("QLinearConcat", [scale, zero, q, scale, zero, q, scale, zero], {"axis": 1}, 1, MS)
    measure("QLinearSoftmax", ["u8[64,1000]", scale + "*", zero + "*", scale + "*", zero + "*"], {"opset": 13}, 1, MS)


def reductions():
    for op in "ReduceSum ReduceMean ReduceMax ReduceL2 ReduceLogSumExp ReduceProd ReduceSumSquare".split():
        for axes in ("0", "1", "2", "3", "0,1", "1,2", "2,3", "0,2", "1,3", "0,3", "0,2,3", "0,1,3", "0,1,2,3"):
            n = len(axes.split(","))
            measure(op, ["f32[16,24,32,20]", f"i64[{n}]={axes}"], {"keepdims": 1}) if op == "ReduceSum" or axes in ("0", "1", "3", "0,2", "0,2,3", "1,3") else None
    for t in ("f64", "i64", "i32", "f16"):
        measure("ReduceSum", [f"{t}[16,24,32,20]", "i64[2]=0,2"])
        measure("ReduceSum", [f"{t}[16,24,32,20]", "i64[1]=3"])
    for op in ("ArgMax", "ArgMin"):
        for axis in (0, 1, 2):
            measure(op, ["f32[64,64,64]"], {"axis": axis})
    for axes in ("0", "1", "0,2", "2"):
        n = len(axes.split(","))
        measure("ReduceSum", ["f32[512,16,64]", f"i64[{n}]={axes}"])


def sequences():
    for b, s, hid, heads in [(2, 64, 128, 4), (1, 128, 128, 8), (4, 32, 256, 4)]:
        measure("Attention", [f"f32[{b},{s},{hid}]", f"f32[{hid},{3 * hid}]", f"f32[{3 * hid}]"], {"num_heads": heads}, 1, MS)
        measure("Attention", [f"f32[{b},{s},{hid}]", f"f32[{hid},{3 * hid}]*", f"f32[{3 * hid}]*"], {"num_heads": heads}, 1, MS)
        measure("Attention", [f"f32[{b},{s},{hid}]", f"f32[{hid},{3 * hid}]*", f"f32[{3 * hid}]*"], {"num_heads": heads, "unidirectional": 1}, 1, MS)
        measure("MultiHeadAttention", [f"f32[{b},{s},{hid}]"] * 3, {"num_heads": heads}, 1, MS)
        measure("MultiHeadAttention", [f"f32[{b},{s},{hid}]"] * 3 + [f"f32[{3 * hid}]"], {"num_heads": heads}, 1, MS)
        measure("GroupQueryAttention", [f"f32[{b},{s},{hid}]", f"f32[{b},{s},{hid}]", f"f32[{b},{s},{hid}]", "", "", f"i32[{b}]=" + ",".join([str(s - 1)] * b), f"i32[]={s}"], {"num_heads": heads, "kv_num_heads": heads}, 3, MS)
    measure("Attention", ["f32[2,4,64,32]"] * 3)
    measure("Attention", ["f32[2,64,128]"] * 3, {"q_num_heads": 4, "kv_num_heads": 4})
    measure("Attention", ["f32[1,8,128,64]"] * 3, {"is_causal": 1})
    measure("MultiHeadAttention", ["f32[1,1024,256]"] * 3, {"num_heads": 4}, 1, MS)
    for op, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        for seq, b, i, hid, d in [(32, 4, 64, 128, 1), (32, 4, 64, 128, 2), (64, 1, 64, 128, 1), (64, 16, 32, 64, 1)]:
            attributes = {"hidden_size": hid, "direction": "bidirectional" if d == 2 else "forward"}
            for const in ("", "*"):
                measure(op, [f"f32[{seq},{b},{i}]", f"f32[{d},{gates * hid},{i}]{const}", f"f32[{d},{gates * hid},{hid}]{const}"], attributes)
    measure("SoftmaxCrossEntropyLoss", ["f32[64,1000]", "i64[64]"], {}, 2)
    measure("NegativeLogLikelihoodLoss", ["f32[64,1000]", "i64[64]"], {})


if __name__ == "__main__":
    print("domain,op,operands,attributes,results,result_bytes,workspace,in_place")
    for family in (convolutions, products, shapes_and_moves, elementwise, reductions, sequences):
        family()
