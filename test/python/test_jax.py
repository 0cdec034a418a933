"""Training steps of JAX: planned by the plugin, their modules are read back by the dialects of JAX, compute the same, and take less in XLA."""

import functools

import jax_lab
import native
import need
import pytest

pytest.importorskip("jax", reason="JAX is not installed: third_party/fetch.sh does where there are wheels")
need.require(
    "mlir", (native.LLVM / "bin" / "mlir-opt").exists(), f"no LLVM 22 in {native.LLVM}: third_party/fetch.sh installs it"
)

SMALL = {
    "mlp": {"layers": 4, "batch": 1024},
    "transformer": {"layers": 2, "batch": 4},
}
DETERMINISTIC = "step-limit=20000 time-limit=60s"
PLAIN = {"xla_disable_hlo_passes": "cse_barrier_expander,algsimp,fusion"}
"""Neither algebra nor fused kernels, which round in another way where a barrier stands between operations. Batched products still do."""
SHARE = {"mlp": 0.7, "transformer": 0.75}
"""Of what XLA allots to temporary results, at the lowest budget."""
DIFFERENCE = 1e-6
"""Of the largest number, where XLA simplifies and fuses."""


@pytest.fixture(scope="module")
def plugin():
    found = native.Built.find().plugin
    need.require("mlir", found is not None, "libremat.so is not built: `make test-mlir` does")
    return found


@functools.cache
def step(name):
    step, operands = jax_lab.STEPS[name](**SMALL[name])
    return jax_lab.lowered(step, operands), operands


@functools.cache
def before(name, plain):
    return jax_lab.run(*step(name), PLAIN if plain else jax_lab.KEEP_BARRIERS)


def test_a_planned_step_computes_the_same_bits(plugin):
    name = "mlp"
    text, operands = step(name)
    plan = jax_lab.planned(text, plugin, "min", DETERMINISTIC)
    assert "remat.recompute" not in plan and "remat.dealloc" not in plan
    assert plan.count('"stablehlo.optimization_barrier"') > 0
    after = jax_lab.run(plan, operands, PLAIN)
    assert jax_lab.equal_bits(before(name, True), after)


@pytest.mark.parametrize("name", SMALL)
def test_the_memory_that_xla_allots_falls_and_results_stay(name, plugin):
    import numpy

    text, operands = step(name)
    unplanned = before(name, False)
    plan = jax_lab.planned(text, plugin, "min", DETERMINISTIC)
    after = jax_lab.run(plan, operands)
    assert after.temporary <= SHARE[name] * unplanned.temporary
    # What is donated is still overwritten.
    assert after.aliased == unplanned.aliased > 0
    for was, now in zip(unplanned.results, after.results, strict=True):
        assert numpy.abs(was - now).max() <= DIFFERENCE * numpy.abs(was).max()


def test_xla_on_a_cpu_undoes_the_plan_unless_it_is_told_to_keep_barriers(plugin):
    """Why `KEEP_BARRIERS` is there."""
    text, operands = step("mlp")
    plan = jax_lab.planned(text, plugin, "min", DETERMINISTIC)
    undone = jax_lab.run(plan, operands, flags={})
    assert undone.temporary > 0.9 * before("mlp", False).temporary


def test_loops_of_jax_are_planned_as_single_operations(plugin):
    """`jax.lax.scan` becomes a loop with an effect-free body."""
    import jax
    import jax.numpy as jnp

    def loss(weights, x):
        def layer(x, w):
            return jnp.tanh(x @ w), None

        first, _ = jax.lax.scan(layer, x, weights)
        second, _ = jax.lax.scan(layer, jnp.sort(first), weights)
        return jnp.mean(second * first)

    weights, x = jnp.full((4, 64, 64), 0.01), jnp.ones((256, 64))
    text = jax_lab.lowered(jax_lab.descent(loss), (weights, x))
    assert text.count('"stablehlo.while"') > 0
    plan = jax_lab.planned(text, plugin, "min", DETERMINISTIC)
    kept = (jax_lab.run(module, (weights, x), PLAIN) for module in (text, plan))
    assert jax_lab.equal_bits(*kept)
