"""Networks with open dimensions, and a session that sees many of their shapes: how far the process grows, which bits come
of it, and how long it takes.

    python test/python/shapes_lab.py ORIGINAL PLANNED --shapes batch=1..64,sequence=1..512 [--count 1000] [--threads 1]

runs the planned model (with `PLANNED.arena` and the library beside it) and the original in a default session on the same
random shapes, each in a process of its own, and prints what came of it; their times are taken in turns in a third one.
"""

import argparse
import hashlib
import itertools
import json
import pathlib
import random
import re
import subprocess
import sys
import time

import numpy as np
import onnxruntime as ort
from arena import Arena
from models import FLOAT, Builder

CODE = 4 << 20
"""Bytes of code that the kernels of a session may read from files."""
RULE = 16
"""Pages that none of so many runs in a row needed go back when the next one begins: two windows of the library."""


def speech(path):
    """An encoder of frames: convolutions with strides, attention over what is left of them."""
    width = 32
    b = Builder([("frames", FLOAT, [1, 20, "t"])], [("y", FLOAT, [1, None, width])])
    h = b.op("Relu", [b.op("Conv", ["frames", b.weight("w0", width, 20, 3)], "c0", pads=[1, 1], strides=[2])], "r0")
    h = b.op("Relu", [b.op("Conv", [h, b.weight("w1", width, width, 3)], "c1", pads=[1, 1], strides=[2])], "r1")
    h = b.op("Transpose", [h], "h", perm=[0, 2, 1])
    for layer in range(2):
        q, k, v = (b.op("MatMul", [h, b.weight(f"{what}w{layer}", width, width)], f"{what}{layer}") for what in "qkv")
        scores = b.op("MatMul", [q, b.op("Transpose", [k], f"kt{layer}", perm=[0, 2, 1])], f"s{layer}")
        read = b.op("MatMul", [b.op("Softmax", [scores], f"p{layer}", axis=-1), v], f"o{layer}")
        h = b.op("Add", [h, read], f"h{layer}" if layer < 1 else "y")
    return b.save(path)


def detector(path):
    """Boxes on three scales of an image, and the best of all of them."""
    b = Builder([("image", FLOAT, ["n", 3, "h", "w"])], [("best", FLOAT, ["n", 20])])
    h, levels = "image", []
    for level, (width, out) in enumerate([(3, 8), (8, 16), (16, 32)]):
        h = b.op("Conv", [h, b.weight(f"w{level}", out, width, 3, 3)], f"c{level}", pads=[1] * 4, strides=[2, 2])
        h = b.op("Relu", [h], f"r{level}")
        head = b.op("Conv", [h, b.weight(f"head{level}", 4, out, 1, 1)], f"b{level}")
        levels.append(b.op("Reshape", [head, b.constant(f"flat{level}", np.array([0, 4, -1]))], f"f{level}"))
    every = b.op("ReduceMax", [b.op("Concat", levels, "all", axis=2)], "scores", axes=[1], keepdims=0)
    b.several("TopK", [every, b.constant("count", np.array([20]))], ["best", "places"], "top", axis=1)
    return b.save(path)


def step(path):
    """A step of training: a network of dense layers forward, and the gradients of its weights backward."""
    width, layers = 64, 4
    b = Builder([("x", FLOAT, ["n", width]), ("wanted", FLOAT, ["n", width])], [("loss", FLOAT, [])])
    h, kept = "x", []
    for layer in range(layers):
        b.weight(f"w{layer}", width, width)
        kept.append((h, f"a{layer}"))
        b.op("MatMul", [h, f"w{layer}"], f"z{layer}")
        h = b.op("Tanh", [f"z{layer}"], f"a{layer}")
    error = b.op("Sub", [h, "wanted"], "error")
    b.op("ReduceMean", [b.op("Mul", [error, error], "squares")], "loss", keepdims=0)
    gradient = error
    for layer in reversed(range(layers)):
        before, after = kept[layer]
        slope = b.op("Sub", [b.constant(f"one{layer}", np.float32(1)), b.op("Mul", [after, after], f"q{layer}")], f"d{layer}")
        gradient = b.op("Mul", [gradient, slope], f"gz{layer}")
        b.op("MatMul", [b.op("Transpose", [before], f"t{layer}", perm=[1, 0]), gradient], f"gw{layer}")
        b.output(f"gw{layer}", [width, width])
        gradient = b.op("MatMul", [gradient, b.op("Transpose", [f"w{layer}"], f"wt{layer}", perm=[1, 0])], f"gx{layer}")
    return b.save(path)


class Plan:
    """What a plan says, read by its documentation and not by the library's code."""

    def __init__(self, path):
        self.dims, self.derived, self.plans = [], [], []
        for line in pathlib.Path(path).read_text().splitlines()[4:]:
            word, *rest = line.split(" ")
            if word == "dim":
                self.dims.append(" ".join(rest[2:]))
            elif word == "let":
                self.derived.append(rest)
            elif word == "plan":
                self.plans.append([])
            elif word != "input":
                self.plans[-1].append((word.removeprefix("<="), int(rest[0]), int(rest[1])))

    def load(self, dims, threads):
        """Most bytes that are live at one time in a run of this shape."""
        values = [dims.get(name, threads) for name in self.dims]
        for kind, *of in self.derived:
            one, other = evaluated(of[0], values), evaluated(of[1], values)
            values.append({"floor": lambda a, b: a // b, "max": max, "min": min}[kind](one, other))
        return max(self.load_of(buffers, values) for buffers in self.plans)

    @staticmethod
    def load_of(buffers, values):
        changes = []
        for formula, first, last in buffers:
            size = -(-max(evaluated(formula, values), 0) // 64) * 64
            changes += [(first, 1, size), (last, 0, -size)]
        now = most = 0
        for _, _, change in sorted(changes):
            now += change
            most = max(most, now)
        return most


def evaluated(formula, values):
    total = 0
    for sign, term in re.findall(r"([+-]?)([^+-]+)", formula):
        product = -1 if sign == "-" else 1
        for factor in term.split("*"):
            name, _, power = factor.partition("^")
            product *= (values[int(name[1:])] if name.startswith("d") else int(name)) ** int(power or 1)
        total += product
    return total


def sizes(text):
    """The sizes of each dimension that `--shapes` states."""
    found, name = {}, None
    for piece in text.split(","):
        name, of = piece.rsplit("=", 1) if "=" in piece else (name, piece)
        of, _, by = of.partition(":")
        least, _, most = of.partition("..")
        found.setdefault(name, []).extend(range(int(least), int(most or least) + 1, int(by or 1)))
    return found


def some(text, count):
    """Random shapes, the same in every process."""
    chosen, all_sizes = random.Random(1), sizes(text)
    return [{name: chosen.choice(of) for name, of in all_sizes.items()} for _ in range(count)]


def status(name):
    with open("/proc/self/status", encoding="ascii") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def forget_most():
    pathlib.Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def opened(model, plan, library, threads):
    """A session, with a plan of memory where one is named."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    if plan is not None:
        options.add_session_config_entry("remat.arena.plan", str(plan))
        options.register_custom_ops_library(str(library))
    return ort.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])


def feeds(session, shapes):
    """The inputs of each shape, all views of what is there before the first run."""
    made = np.random.default_rng(0)
    pool = {"tensor(float)": made.standard_normal(1 << 22, np.float32), "tensor(int64)": made.integers(0, 4, 1 << 22)}
    for dims in shapes:
        feed = {}
        for value in session.get_inputs():
            shape = [dims[dim] if isinstance(dim, str) else dim for dim in value.shape]
            view = pool[value.type][: int(np.prod(shape))].reshape(shape)
            feed[value.name] = ort.OrtValue.ortvalue_from_numpy(view)
        yield feed


def ratios(original, planned, plan, library, shapes, threads):
    """Of every run its time beside that of the original in a default session: both in one process, in turns."""
    sessions = [opened(planned, plan, library, threads), opened(original, None, library, threads)]
    names, found = [output.name for output in sessions[0].get_outputs()], []
    for place, feed in enumerate(feeds(sessions[0], shapes)):
        seconds = [0.0, 0.0]
        for which in (0, 1) if place % 2 else (1, 0):
            start = time.perf_counter()
            outputs = sessions[which].run_with_ort_values(names, feed)
            seconds[which] = time.perf_counter() - start
            del outputs
        found.append(seconds[0] / seconds[1])
    return found


def runs(model, plan, library, shapes, threads):
    """Of every run the largest growth of the process, its growth afterwards and bits; and what the library counted."""
    session = opened(model, plan, library, threads)
    names, inputs = [output.name for output in session.get_outputs()], feeds(session, shapes)
    first = next(inputs)
    forget_most()
    before, rows = status("VmRSS:"), []
    for feed in itertools.chain([first], inputs):
        forget_most()
        outputs = session.run_with_ort_values(names, feed)
        most = status("VmHWM:") - before
        digest = hashlib.sha256(b"".join(output.numpy().tobytes() for output in outputs)).hexdigest()
        del outputs, feed
        rows.append((most, status("VmRSS:") - before, digest))
    return rows, Arena(library).figures() if plan is not None else None


def in_a_process(of, *arguments):
    """What one of the functions gives in a process of its own."""
    code = "import json, sys; sys.path.insert(0, sys.argv[1]); import shapes_lab; "
    code += "print(json.dumps(getattr(shapes_lab, sys.argv[2])(*json.loads(sys.argv[3]))))"
    folder = str(pathlib.Path(__file__).parent)
    words = [sys.executable, "-c", code, folder, of.__name__, json.dumps(arguments, default=str)]
    return json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)


def beyond(plan, shapes, rows, threads):
    """By how many bytes the process grew beyond 1.05 times what the largest recent shape has live at one time, 1 MB and
    code, at most; negative where it stayed below."""
    loads, most = [plan.load(dims, threads) for dims in shapes], []
    for place, (growth, *_) in enumerate(rows):
        recent = max(loads[max(0, place - RULE) : place + 1])
        most.append(growth - (1.05 * recent + 1_000_000 + CODE))
    return max(most)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("original", type=pathlib.Path)
    parser.add_argument("planned", type=pathlib.Path)
    parser.add_argument("--shapes", required=True)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=1)
    chosen = parser.parse_args()
    plan, library = f"{chosen.planned}.arena", chosen.planned.with_name("libremat_arena.so").resolve()
    shapes = some(chosen.shapes, chosen.count)
    rows, figures = in_a_process(runs, chosen.planned, plan, library, shapes, chosen.threads)
    stock, _ = in_a_process(runs, chosen.original, None, library, shapes, chosen.threads)
    times = in_a_process(ratios, chosen.original, chosen.planned, plan, library, shapes, chosen.threads)
    loads = [Plan(plan).load(dims, chosen.threads) for dims in shapes]
    report = {
        "shapes": len(shapes),
        "other_bits": sum(one[2] != other[2] for one, other in zip(rows, stock, strict=True)),
        "largest_load": max(loads),
        "largest_growth": max(row[0] for row in rows),
        "largest_growth_stock": max(row[0] for row in stock),
        "beyond_allowed": round(beyond(Plan(plan), shapes, rows, chosen.threads)),
        "median_growth_after_a_run": sorted(row[1] for row in rows)[len(rows) // 2],
        "median_growth_after_a_run_stock": sorted(row[1] for row in stock)[len(stock) // 2],
        "time_ratio_median": round(sorted(times)[len(times) // 2], 3),
        **figures,
    }
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
