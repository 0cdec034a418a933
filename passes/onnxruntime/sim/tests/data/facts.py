#!/usr/bin/env python3
"""What ONNX Runtime does with a model, as JSON: the graph its optimizers leave, in the order of the file, with true types and
shapes; the order it runs the nodes in; the heap peak of one run with the memory arena off, and with it on.

    LD_PRELOAD=heap_peak.so facts.py MODEL LEVEL ORDER > facts.json      LEVEL: off|basic|extended|all, ORDER: default|priority

The preloaded meter exports heap_now, heap_peak and heap_peak_reset; without it no peak is stated.
"""
import ctypes, json, os, sys, tempfile, zlib

import numpy as np
import onnx
import onnxruntime as ort

ort.set_default_logger_severity(3)
LEVELS = ort.GraphOptimizationLevel
LEVEL = {"off": LEVELS.ORT_DISABLE_ALL, "basic": LEVELS.ORT_ENABLE_BASIC, "extended": LEVELS.ORT_ENABLE_EXTENDED, "all": LEVELS.ORT_ENABLE_ALL}
ORDER = {"default": ort.ExecutionOrder.DEFAULT, "priority": ort.ExecutionOrder.PRIORITY_BASED}
NUMPY = {"float": np.float32, "double": np.float64, "float16": np.float16, "int64": np.int64, "int32": np.int32, "bool": np.bool_, "uint8": np.uint8, "int8": np.int8}


def session(path, level, order, arena=False, pattern=False, reuse=True, **options):
    so = ort.SessionOptions()
    so.graph_optimization_level, so.execution_order, so.intra_op_num_threads = LEVEL[level], ORDER[order], 1
    so.enable_cpu_mem_arena, so.enable_mem_pattern, so.enable_mem_reuse = arena, pattern, reuse
    for name, value in options.items():
        setattr(so, name, value)
    return ort.InferenceSession(path, so, providers=["CPUExecutionProvider"])


def feed(s):
    """Seeded by name; floats scaled by fan-in, integers in 0..3, open dimensions 2."""
    out = {}
    for i in s.get_inputs():
        shape = [d if isinstance(d, int) else 2 for d in i.shape]
        rng = np.random.default_rng(zlib.crc32(i.name.encode()))
        kind = i.type[len("tensor("):-1]
        if "float" in kind or kind == "double":
            a = rng.standard_normal(shape) / max(1, np.prod(shape[1:])) ** 0.5 if len(shape) > 1 else 1 + 0.1 * rng.standard_normal(shape)
        else:
            a = rng.integers(0, 4, shape)
        out[i.name] = np.asarray(a).astype(NUMPY[kind])
    return out


def peaks(path, level, order, runs=1, **options):
    """Heap peaks of the first and of the last run, over what the loaded session holds."""
    heap = ctypes.CDLL(None)
    if not hasattr(heap, "heap_peak"):
        return None
    heap.heap_now.restype = heap.heap_peak.restype = ctypes.c_long
    s = session(path, level, order, **options)
    f, found = feed(s), []
    before = heap.heap_now()
    for _ in range(runs):
        heap.heap_peak_reset()
        s.run(None, f)
        found.append(heap.heap_peak() - before)
    return [found[0], found[-1]]


def attributes(node):
    out = {}
    for a in node.attribute:
        value = onnx.helper.get_attribute_value(a)
        if a.type in (onnx.AttributeProto.INT, onnx.AttributeProto.INTS):
            out[a.name] = value if isinstance(value, int) else list(value)
        elif a.type == onnx.AttributeProto.STRING:
            out[a.name] = value.decode()
    return out


def captures(node):
    """Outer values that the subgraphs of a node read."""
    found = []
    for a in node.attribute:
        for g in [a.g] if a.type == onnx.AttributeProto.GRAPH else a.graphs:
            own = {v.name for v in g.input} | {t.name for t in g.initializer} | {o for n in g.node for o in n.output}
            reads = [x for n in g.node for x in list(n.input) + captures(n)] + [o.name for o in g.output]
            found += [x for x in reads if x and x not in own]
    return list(dict.fromkeys(found))


def typed(t):
    dims = [d.dim_value if d.HasField("dim_value") else 2 for d in t.type.tensor_type.shape.dim]
    return [t.name, onnx.TensorProto.DataType.Name(t.type.tensor_type.elem_type).lower(), dims]


def facts(path, level, order):
    with tempfile.TemporaryDirectory() as folder:
        named, saved = os.path.join(folder, "named.onnx"), os.path.join(folder, "saved.onnx")
        model = onnx.load(path)
        for i, node in enumerate(model.graph.node):
            node.name = f"n{i}"
        onnx.save(model, named)
        s = session(named, level, order, enable_profiling=True, profile_file_prefix=os.path.join(folder, "p"), optimized_model_filepath=saved)
        s.run(None, feed(s))
        events = [e for e in json.load(open(s.end_profiling())) if e.get("cat") == "Node" and e["name"].endswith("_kernel_time")]
        s = None
        graph = onnx.load(saved).graph
        # Nodes of subgraphs are listed too.
        if any(not n.name for n in graph.node) and order == "default":
            # Changed graphs are saved in the order they run in; casts and bodies of functions have no names.
            for i, (n, e) in enumerate(zip(graph.node, events)):
                assert n.op_type == e["args"]["op_name"], (n.op_type, e["name"])
                n.name = e["name"][: -len("_kernel_time")] if not n.name else n.name
        own = {n.name for n in graph.node}
        events = [(e["name"][: -len("_kernel_time")], e) for e in events if e["name"][: -len("_kernel_time")] in own]
        run = [n for n, _ in events]
        true = {n: e["args"]["output_type_shape"] for n, e in events}
        nodes = []
        # Names count positions in the given file, which decide the order; nodes that optimizers made have none.
        placed = all(n.name[1:].isdigit() for n in graph.node)
        for n in sorted(graph.node, key=lambda n: int(n.name[1:])) if placed else graph.node:
            shapes = [next(iter(t.items())) for t in true[n.name]]
            outs = iter([[kind, dims] for kind, dims in shapes])
            node = {"name": n.name, "op": n.op_type, "in": list(n.input), "out": [[o, *next(outs)] if o else None for o in n.output]}
            if n.domain:
                node["domain"] = n.domain
            if attributes(n):
                node["attributes"] = attributes(n)
            if captures(n):
                node["captures"] = captures(n)
            nodes.append(node)
        at = {n["name"]: i for i, n in enumerate(nodes)}
        weights = [[t.name, onnx.TensorProto.DataType.Name(t.data_type).lower(), list(t.dims)] for t in graph.initializer]
        held = {t[0] for t in weights}
        out = {
            "runtime": ort.__version__, "level": level, "order": order,
            "inputs": [typed(i) for i in graph.input if i.name not in held], "initializers": weights,
            "outputs": [o.name for o in graph.output], "nodes": nodes, "placed": placed, "run": [at[n] for n in run],
        }
        heap = peaks(path, level, order)
        if heap:
            out["heap"] = {"reuse": heap[0], "no_reuse": peaks(path, level, order, reuse=False)[0]}
            out["arena"] = peaks(path, level, order, 3, arena=True, pattern=True)
        return out


if __name__ == "__main__":
    json.dump(facts(*sys.argv[1:4]), sys.stdout, separators=(",", ":"))
