"""Networks in TensorFlow Lite Micro, with the memory that its interpreter plans and with a plan of `remat_opt.tflm`: prints what each takes and
whether the results have the same bits.

    python test/python/tflm_lab.py FOLDER               # small networks
    python test/python/tflm_lab.py FOLDER FILE.csv...   # models with the buffers of files in MiniMalloc's format; FOLDER is for what is written
"""

import json
import pathlib
import subprocess
import sys

import numpy
from planners import tflm as program

from planners.buffers import load, read
from remat_opt import tflm

ARENA = 8 << 20
LIMITS = {"step_limit": 100_000, "time_limit": 600}


def network(seed):
    """Dense layers of random widths, many of which read an earlier one, too; what nobody reads meets at the end."""
    random = numpy.random.default_rng(seed)
    made = program.Model()
    layers = [(made.tensor("FLOAT32", [1, 64]), 64)]
    unread = set()

    def joined(parts):
        if len(parts) == 1:
            return parts[0]
        width = sum(width for _, width in parts)
        result = made.tensor("FLOAT32", [1, width])
        options = made.schema.ConcatenationOptionsT()
        options.axis = 1
        made.op("CONCATENATION", [tensor for tensor, _ in parts], [result], options)
        return result, width

    for _ in range(24):
        chosen = sorted({len(layers) - 1, *random.integers(0, len(layers), random.integers(0, 3)).tolist()})
        source, width = joined([layers[at] for at in chosen])
        unread -= set(chosen)
        out = int(random.integers(16, 600))
        weights = made.tensor("FLOAT32", [out, width], random.normal(size=(out, width)).astype("<f4").tobytes())
        result = made.tensor("FLOAT32", [1, out])
        made.op("FULLY_CONNECTED", [source, weights, -1], [result], made.schema.FullyConnectedOptionsT())
        unread.add(len(layers))
        layers.append((result, out))
    made.graph.inputs = [layers[0][0]]
    made.graph.outputs = [joined([layers[at] for at in sorted(unread)])[0]]
    return made.packed()


RUN = """
import sys, numpy
from tflite_micro import runtime
interpreter = runtime.Interpreter.from_file(sys.argv[1], arena_size=int(sys.argv[3]))
interpreter.set_input(numpy.linspace(-1, 1, 64, dtype=numpy.float32).reshape(1, 64), 0)
interpreter.invoke()
numpy.save(sys.argv[2], interpreter.get_output(0))
"""


def result(folder, model):
    (path, output) = (f"{folder}/model.tflite", f"{folder}/output.npy")
    with open(path, "wb") as file:
        file.write(model)
    subprocess.run([sys.executable, "-c", RUN, path, output, str(ARENA)], check=True, capture_output=True)
    return numpy.load(output).tobytes()


def main(folder):
    rows = []
    for seed in range(4):
        model = network(seed)
        places, placement = tflm.placement(model, **LIMITS)
        planned = tflm.with_offsets(model, places)
        rows.append(
            {
                "own": program.head(model, ARENA),
                "planned": program.head(planned, ARENA),
                "height": placement.height,
                "load": placement.load,
                "is_same": result(folder, model) == result(folder, planned),
                "is_read": tflm.offsets(model) is None and tflm.offsets(planned) == places,
                "is_replaced": tflm.offsets(tflm.plan(tflm.with_offsets(model, [None] * len(places)), **LIMITS)) == places,
            }
        )
    print(json.dumps(rows))


def files(paths):
    for path in map(pathlib.Path, paths):
        model, buffers = program.model(read(path))
        planned = tflm.plan(model, **LIMITS)
        arena = min(3 * load(buffers) + ARENA, (1 << 31) - 1)
        print(f"{path.stem}: load {load(buffers)}, own {program.head(model, arena)}, planned {program.head(planned, arena)}")


if __name__ == "__main__":
    files(sys.argv[2:]) if len(sys.argv) > 2 else main(sys.argv[1])
