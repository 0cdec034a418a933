"""Writes the functions whose memory is measured on native code: one `.mlir` file each, beside this script or in a given folder.

    python test/mlir/native/generate.py [FOLDER]

Each is large enough that its tensors dominate the heap and small enough to run in less than a second as plain loops.
"""

import pathlib
import sys

import linalg
from tosa import Function


def chain():
    """Down and up again, every level read by its counterpart."""
    f = Function(
        "chain", "A chain of elementwise operations with long skips, as in an encoder and a decoder: 1 MiB a tensor."
    )
    value = f.argument("x", 1, 512, 512)
    levels = []
    for level in range(12):
        value = f.tanh(f.scale(value, 1.5)) if level % 2 else f.exp(f.scale(f.mul(value, value), -0.5))
        levels.append(value)
    for skip in reversed(levels[:-1]):
        value = f.tanh(f.add(value, skip))
    return f.text(value)


def mlp(layers=8, batch=4096, width=64):
    """One step of gradient descent."""
    f = Function("mlp", f"A training step of a perceptron with {layers} layers: forward, backward, new weights.")
    x, target = f.argument("x", 1, batch, width), f.argument("target", 1, batch, width)
    weights = [f.argument(f"w{i}", 1, width, width) for i in range(layers)]
    biases = [f.argument(f"b{i}", 1, 1, width) for i in range(layers)]
    value = x
    for weight, bias in zip(weights, biases):
        value = f.tanh(f.add(f.matmul(value, weight), bias))
    parameters = weights + biases
    gradients = f.gradients(value, f.sub(value, target), parameters)
    return f.text(*(f.sub(p, f.scale(g, 1e-4)) for p, g in zip(parameters, gradients)))


def unet(size=128, channels=8, depth=3):
    """Convolutions, means and doublings of resolution; skips are concatenated."""
    f = Function(
        "unet", f"A training step of a U-Net with {depth} resolutions: the outputs are the gradients of the weights."
    )
    image, target = f.argument("image", 1, size, size, channels), f.argument("target", 1, size, size, channels)
    weights = []

    def block(value, out):
        weights.append(f.argument(f"w{len(weights)}", out, 3, 3, value.shape[-1]))
        return f.tanh(f.conv(value, weights[-1]))

    value, skips = image, []
    for level in range(depth):
        value = block(value, channels << level)
        if level + 1 < depth:
            skips.append(value)
            value = f.halve(value)
    for skip in reversed(skips):
        value = block(f.concat(f.double(value), skip), skip.shape[-1])
    return f.text(*f.gradients(value, f.sub(value, target), weights))


def attention(heads=4, length=512, width=64, part=32):
    """Softmax attention, head by head."""
    f = Function(
        "attention",
        f"A training step of attention with {heads} heads: the outputs are the gradients of input and weights.",
    )
    x, target = f.argument("x", 1, length, width), f.argument("target", 1, length, width)
    weights, total = [], x
    for head in range(heads):
        query, key, value = (f.argument(f"{kind}{head}", 1, width, part) for kind in "qkv")
        out = f.argument(f"o{head}", 1, part, width)
        weights += [query, key, value, out]
        scores = f.matmul(f.scale(f.matmul(x, query), part**-0.5), f.transpose(f.matmul(x, key), 0, 2, 1))
        raised = f.exp(f.sub(scores, f.reduce_max(scores, 2)))
        shares = f.mul(raised, f.reciprocal(f.reduce_sum(raised, 2)))
        total = f.add(total, f.matmul(f.matmul(shares, f.matmul(x, value)), out))
    return f.text(*f.gradients(total, f.sub(total, target), [x, *weights]))


def mobile(size=96, channels=16, wider=6):
    """Two blocks as in MobileNetV2: what is inside of a block is large, what goes in and comes out is small."""
    f = linalg.Function("mobile", "Inverted residual blocks, for inference: the peak is inside of a block, which tiles lower and orders do not.")
    inside = channels * wider
    value = f.argument("image", 1, size, size, channels)
    for block in range(2):
        expand = f.argument(f"expand{block}", 1, 1, channels, inside)
        depthwise = f.argument(f"depthwise{block}", 3, 3, inside)
        project = f.argument(f"project{block}", 1, 1, inside, channels)
        wide = f.relu6(f.conv(value, expand))
        wide = f.relu6(f.depthwise(f.pad(wide), depthwise))
        value = f.add(value, f.conv(wide, project))
    return f.text(f.max_pool(value))


def perceptron(batch=2048, width=64, inside=1024):
    """Two layers with a wide one between them."""
    f = linalg.Function("perceptron", "A perceptron for inference whose inner layer is wide.")
    x = f.argument("x", batch, width)
    up, down = f.argument("up", width, inside), f.argument("down", inside, width)
    return f.text(f.matmul(f.relu6(f.matmul(x, up)), down))


RUN = """\
// Written by generate.py. Schedules on either level survive what merges and drops operations.
// REQUIRES: scheduler
// RUN: mlir-opt %load --pass-pipeline='builtin.module(func.func(cse,canonicalize,{remat},cse,canonicalize,remat-verify))' %s | FileCheck %s
// RUN: mlir-opt %load --pass-pipeline='builtin.module(func.func(cse,canonicalize,{linalg},{remat},cse,canonicalize,remat-verify))' %s | FileCheck %s
// CHECK: func.func @{name}{{{{.*}}}}remat.peak
"""
"""What makes a file a test of the lit suite."""
PASSES = {
    "remat": "remat{budget=60%% step-limit=20000 remarks=false}",
    "linalg": "tosa-to-linalg-named,tosa-to-linalg,tosa-to-tensor,tosa-to-arith",
}

CASES = {"chain": chain, "mlp": mlp, "unet": unet, "attention": attention}

TILED = """\
// Written by generate.py. Tiles lower the peak below that of any order, and survive what merges and drops operations.
// REQUIRES: scheduler
// RUN: mlir-opt %load --pass-pipeline='builtin.module(func.func(cse,canonicalize,{tiles},cse,canonicalize,remat-verify))' %s | FileCheck %s
// CHECK: func.func @{name}{{{{.*}}}}remat.peak
// CHECK: tensor.extract_slice
// CHECK: tensor.insert_slice
"""
"""The same for functions that run in tiles."""
TILES = "remat{budget=50%% fission=exact step-limit=200 remarks=false}"
TILED_CASES = {"mobile": mobile, "perceptron": perceptron}


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__)
    folder = folder if folder.is_dir() else folder.parent
    for name, case in CASES.items():
        (folder / f"{name}.mlir").write_text(RUN.format(name=name, **PASSES) + "\n" + case())
    for name, case in TILED_CASES.items():
        (folder / f"{name}.mlir").write_text(TILED.format(name=name, tiles=TILES) + "\n" + case())


if __name__ == "__main__":
    main()
