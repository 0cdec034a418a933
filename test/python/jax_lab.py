"""Training steps of JAX, planned as StableHLO by the plugin and compiled by XLA on a CPU: the bits and the memory of each.

    python test/python/jax_lab.py [--steps mlp,transformer] [--budgets 80%,60%,min] [--options TEXT]

A budget in percent is one of what XLA itself allots to temporary results of the step as it stands. Printed are the predicted peak and what XLA
allots before and after, as its buffer assignment says, how many barriers there are, and the largest
difference of a result, relative to its largest number. The last line of each step is that of `jax.checkpoint` around every layer.
"""

import argparse
import dataclasses
import os
import re

import native

os.environ.setdefault("JAX_PLATFORMS", "cpu")
KEEP_BARRIERS = {"xla_disable_hlo_passes": "cse_barrier_expander"}
"""On a CPU, XLA takes optimization barriers out before it merges equal operations for the last time and orders them. Without that pass
barriers stay to the end."""


def mlp(layers=8, width=256, batch=4096, checkpoint=False):
    """A perceptron, its mean squared error, and a step of gradient descent: a function and its operands."""
    import jax
    import jax.numpy as jnp

    def layer(x, weights, bias):
        return jax.nn.gelu(x @ weights + bias)

    layer = jax.checkpoint(layer) if checkpoint else layer

    def loss(params, x, y):
        for weights, bias in params:
            x = layer(x, weights, bias)
        return jnp.mean((x - y) ** 2)

    random = iter(jax.random.split(jax.random.key(0), layers + 2))
    params = [
        (jax.random.normal(next(random), (width, width)) * width**-0.5, jnp.full(width, 0.1)) for _ in range(layers)
    ]
    x, y = (jax.random.normal(next(random), (batch, width)) for _ in range(2))
    return descent(loss), (params, x, y)


def transformer(layers=4, width=128, heads=4, length=128, batch=16, vocabulary=512, checkpoint=False):
    """A decoder of tokens with causal attention, its cross entropy, and a step of gradient descent."""
    import jax
    import jax.numpy as jnp

    def norm(x, gain):
        mean = x.mean(-1, keepdims=True)
        return (x - mean) * jax.lax.rsqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5) * gain

    def block(x, p):
        shape = (*x.shape[:2], heads, width // heads)
        q, k, v = (part.reshape(shape) for part in jnp.split(norm(x, p["norm"][0]) @ p["qkv"], 3, -1))
        scores = jnp.einsum("bshd,bthd->bhst", q, k) * shape[-1] ** -0.5
        scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -1e9)
        mixed = jnp.einsum("bhst,bthd->bshd", jax.nn.softmax(scores), v)
        x = x + mixed.reshape(x.shape) @ p["out"]
        return x + jax.nn.gelu(norm(x, p["norm"][1]) @ p["up"]) @ p["down"]

    block = jax.checkpoint(block) if checkpoint else block

    def loss(params, tokens, targets):
        x = params["embed"][tokens]
        for p in params["blocks"]:
            x = block(x, p)
        scores = jax.nn.log_softmax(x @ params["embed"].T)
        return -jnp.mean(jnp.take_along_axis(scores, targets[..., None], -1))

    random = iter(jax.random.split(jax.random.key(0), 4 * layers + 3))

    def weights(*shape):
        return jax.random.normal(next(random), shape) * shape[0] ** -0.5

    blocks = [
        {
            "norm": jnp.ones((2, width)),
            "qkv": weights(width, 3 * width),
            "out": weights(width, width),
            "up": weights(width, 4 * width),
            "down": weights(4 * width, width),
        }
        for _ in range(layers)
    ]
    params = {"embed": weights(vocabulary, width), "blocks": blocks}
    tokens, targets = (jax.random.randint(next(random), (batch, length), 0, vocabulary) for _ in range(2))
    return descent(loss), (params, tokens, targets)


def descent(loss):
    import jax

    def step(params, *data):
        gradients = jax.grad(loss)(params, *data)
        return jax.tree.map(lambda p, g: p - 0.01 * g, params, gradients)

    return step


STEPS = {"mlp": mlp, "transformer": transformer}


def lowered(step, operands):
    """The module of a step that may overwrite its parameters, in MLIR's generic form, which no dialect is needed to read."""
    import jax

    module = jax.jit(step, donate_argnums=0).lower(*operands).compiler_ir("stablehlo")
    return module.operation.get_asm(print_generic_op_form=True)


def planned(text, plugin, budget, options=""):
    """The module with a plan that keeps the budget, in the same form."""
    remat = f"remat-inline,func.func(remat{{budget={budget} {options}}},remat-lower{{barriers=stablehlo}})"
    plugins = [f"--load-pass-plugin={plugin}", f"--load-dialect-plugin={plugin}"]
    generic = ["--allow-unregistered-dialect", "--mlir-print-op-generic"]
    return native.tool("mlir-opt", *plugins, *generic, f"--pass-pipeline=builtin.module({remat})", input=text)


def predicted(text):
    """Peak in bytes that the function states."""
    return int(re.search(r"remat\.peak = (\d+)", text)[1])


@dataclasses.dataclass(frozen=True)
class Run:
    """What XLA allots, in bytes, and what the compiled step computes."""

    temporary: int
    aliased: int
    results: list


def run(text, operands, flags=KEEP_BARRIERS):
    """Reads a module with the dialects that JAX has, verifies it, compiles and runs it."""
    import jax
    import jax.extend.backend
    import numpy
    from jax.interpreters import mlir
    from jaxlib import xla_client
    from jaxlib.mlir import ir

    given = [numpy.asarray(leaf) for leaf in jax.tree.leaves(operands)]
    with mlir.make_ir_context() as context:
        context.allow_unregistered_dialects = False
        module = ir.Module.parse(text)
        module.operation.verify()
        settings = xla_client.CompileOptions()
        settings.env_option_overrides = list(flags.items())
        devices = xla_client.DeviceList(tuple(jax.devices("cpu")[:1]))
        program = jax.extend.backend.get_backend("cpu").compile_and_load(module, devices, settings)
    allotted = program.get_compiled_memory_stats()
    # What is donated is gone afterwards.
    arrays = [jax.device_put(array, jax.devices("cpu")[0]) for array in given]
    shards = program.execute_sharded(arrays).disassemble_into_single_device_arrays()
    results = [numpy.asarray(shard) for (shard,) in shards]
    return Run(allotted.temp_size_in_bytes, allotted.alias_size_in_bytes, results)


def equal_bits(before, after):
    return len(before.results) == len(after.results) and all(
        a.dtype == b.dtype and a.tobytes() == b.tobytes() for a, b in zip(before.results, after.results)
    )


def difference(before, after):
    """The largest one of all results, relative to the largest number of the result."""
    import numpy

    return max(numpy.abs(a - b).max() / numpy.abs(a).max() for a, b in zip(before.results, after.results, strict=True))


def of_share(budget, whole):
    """A budget for the pass: percent of what XLA allots, or a budget as it stands."""
    return whole * int(budget.removesuffix("%")) // 100 if budget.endswith("%") else budget


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", default="mlp,transformer")
    parser.add_argument("--budgets", default="80%,60%,min")
    parser.add_argument("--options", default="step-limit=400000 time-limit=60s", help="further options of the pass")
    given = parser.parse_args()
    plugin = native.Built.find().plugin
    print("| step | budget | predicted | XLA before | XLA after | barriers | difference |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name in given.steps.split(","):
        step, operands = STEPS[name]()
        text = lowered(step, operands)
        before = run(text, operands)
        for budget in given.budgets.split(","):
            plan = planned(text, plugin, of_share(budget, before.temporary), given.options)
            after = run(plan, operands)
            print(row(name, budget, f"{predicted(plan) / 2**20:.1f} MiB", before, after, plan), flush=True)
        by_hand = lowered(STEPS[name](checkpoint=True)[0], operands)
        after = run(by_hand, operands)
        print(row(name, "`jax.checkpoint`", "-", before, after, by_hand), flush=True)


def row(name, budget, prediction, before, after, text):
    memory = " | ".join(f"{run.temporary / 2**20:.1f} MiB" for run in (before, after))
    barriers = text.count('"stablehlo.optimization_barrier"')
    apart = difference(before, after)
    return f"| {name} | {budget} | {prediction} | {memory} | {barriers} | {apart:.0e} |"


if __name__ == "__main__":
    main()
