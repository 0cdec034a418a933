"""The promise on native code: functions over tensors, lowered by the passes of MLIR, take what their schedules say and compute what
they computed before."""

import functools
import math
import os
import re
import sys

import native
import need
import pytest

sys.path.append(str(native.CASES))
import destinations

BUDGETS = {
    "chain": ["80%", "60%", "40%"],
    "mlp": ["80%", "60%", "40%"],
    "unet": ["80%", "60%", "50%"],
    "attention": ["80%", "60%", "40%"],
}
"""Half the peak of the U-Net is held by single operations."""
FUNCTIONS = ["chain", "mlp", "unet"]
SCHEDULES = [(function, "linalg", "60%") for function in FUNCTIONS] + [("mlp", "tosa", "60%")]
PLACED = [("chain", None), ("mlp", "60%")]
"""What every change is tested with; nightly it is each function at each budget."""
if need.NIGHTLY:
    FUNCTIONS = list(BUDGETS)
    SCHEDULES = [(function, "linalg", budget) for function, budgets in BUDGETS.items() for budget in budgets]
    SCHEDULES += [(function, "tosa", "60%") for function in BUDGETS]
    PLACED = [(function, budget) for function in BUDGETS for budget in (None, "60%")]
CONTROL_FLOW = ["branches", "loop", "choice"]
"""Functions of several blocks, or with regions, that hold more in one of them than they have to."""
TILED = {"mobile": "50%", "perceptron": "25%"}
"""Their peaks are single operations, and the budgets at most half of what they take without `remat`."""
DETERMINISTIC = "step-limit=100000 time-limit=60s"
"""The same plan on every machine, however busy."""
HARD = {("mlp", "40%"): "step-limit=1000000 time-limit=60s"}
"""Budgets for which a plan is found later than that."""
TOLERANCE = 0.01
"""Of the promise. Blocks of 1 MiB, rounded up to pages and aligned within them, take 0.4 % more than their tensors."""
SMALLEST = 5 * 2**20
"""Peak in bytes below which tensors would not dominate the heap."""

need.require(
    "mlir", (native.LLVM / "bin" / "mlir-runner").exists(), f"no LLVM 22 in {native.LLVM}: third_party/fetch.sh installs it"
)


@pytest.fixture(scope="module")
def built():
    found = native.Built.find()
    need.require("mlir", found.plugin is not None, "libremat.so is not built: `make test-mlir` does")
    return found


@pytest.fixture
def paging(built):
    need.require("mlir", built.runtime is not None, "libremat_runtime.so is not built: `make test-mlir` does")
    return built


def source(function):
    return (native.CASES / f"{function}.mlir").read_text()


@functools.cache
def unmodified(function):
    """The function as it stands, through the tools as they are, without the plugin."""
    return native.run(native.schedule(source(function)))


def assert_kept(promised, measured):
    """The promise holds, and is no looser than it says."""
    assert abs(measured - promised) <= promised * TOLERANCE, f"promised {promised}, measured {measured}"


@pytest.mark.parametrize("function", FUNCTIONS)
def test_cases_compute_numbers_and_are_large_enough_to_measure(function):
    before = unmodified(function)
    assert all(math.isfinite(total) and total != 0 for total in before["sums"])
    assert len(set(before["bits"])) == len(before["bits"])
    assert before["peak_bytes"] > SMALLEST


@pytest.mark.parametrize(("function", "level", "budget"), SCHEDULES)
def test_a_scheduled_function_takes_what_was_promised_and_computes_the_same_bits(built, function, level, budget):
    before = unmodified(function)
    limits = HARD.get((function, budget), DETERMINISTIC)
    planned = native.schedule(source(function), built.plugin, level, budget, limits)
    after = native.run(planned, built)
    assert after["bits"] == before["bits"]
    assert_kept(planned.promised, after["peak_bytes"])
    share = float(budget.removesuffix("%")) / 100
    assert after["peak_bytes"] <= before["peak_bytes"] * (share + TOLERANCE)


@pytest.mark.parametrize("level", native.LEVELS)
@pytest.mark.parametrize("function", CONTROL_FLOW)
def test_blocks_and_regions_take_what_was_promised_and_compute_the_same_bits(built, function, level):
    before = unmodified(function)
    assert before["peak_bytes"] > SMALLEST
    as_it_is = native.schedule(source(function), built.plugin, level, "none")
    assert_kept(as_it_is.promised, native.run(as_it_is, built)["peak_bytes"])
    planned = native.schedule(source(function), built.plugin, level, "80%", DETERMINISTIC)
    after = native.run(planned, built)
    assert after["bits"] == before["bits"]
    assert_kept(planned.promised, after["peak_bytes"])
    assert after["peak_bytes"] <= before["peak_bytes"] * (0.8 + TOLERANCE)


@pytest.mark.parametrize("level", native.LEVELS)
def test_a_loop_that_makes_anew_what_it_carries_takes_what_was_promised(built, level):
    to_buffers = [native.TO_BUFFERS[0].replace("}", " allow-return-allocs-from-loops=1}"), *native.TO_BUFFERS[1:]]
    before = native.run(native.schedule(source("repeat")), to_buffers=to_buffers)
    for budget in ("none", "85%"):
        planned = native.schedule(source("repeat"), built.plugin, level, budget, DETERMINISTIC)
        after = native.run(planned, built, to_buffers=to_buffers)
        assert after["bits"] == before["bits"]
        assert_kept(planned.promised, after["peak_bytes"])
    assert after["peak_bytes"] <= before["peak_bytes"] * (0.85 + TOLERANCE)


@pytest.mark.parametrize(("function", "budget"), TILED.items())
def test_a_function_in_tiles_takes_what_no_order_takes_and_computes_the_same_bits(built, function, budget):
    before = unmodified(function)
    assert before["peak_bytes"] > SMALLEST
    with pytest.raises(native.ToolError, match="no plan can meet the budget"):
        native.schedule(source(function), built.plugin, "linalg", budget, "step-limit=2000")
    planned = native.schedule(source(function), built.plugin, "linalg", budget, "fission=exact step-limit=200")
    assert "tensor.extract_slice" in planned.text
    after = native.run(planned, built)
    assert after["bits"] == before["bits"]
    assert_kept(planned.promised, after["peak_bytes"])
    assert after["peak_bytes"] <= before["peak_bytes"] * (0.5 + TOLERANCE)


def test_without_a_budget_the_promise_is_what_the_function_took(built):
    """The accounting itself, on a function in which nothing is moved."""
    for function in FUNCTIONS:
        planned = native.schedule(source(function), built.plugin, "linalg", "none")
        assert planned.recomputed == 0
        assert_kept(planned.promised, unmodified(function)["peak_bytes"])


@pytest.mark.parametrize("seed", range(300 if need.NIGHTLY else 9))
def test_a_random_function_takes_what_was_predicted_and_never_more_than_before(built, seed):
    """Shared empty tensors, results in place and slices among them. `make test-nightly` runs 300."""
    # Twice: what the first round writes into other destinations is merged by the second.
    text = native.optimized(destinations.function(seed), [f"func.func({','.join(native.CLEAN * 2)})"], None)
    before = native.run(native.Scheduled(text))
    budget = ("none", "min", "80%")[seed // 3 % 3]
    # Without a limit nothing is refused.
    try:
        planned = native.schedule(text, built.plugin, "linalg", budget, "step-limit=2000 time-limit=60s")
    except native.ToolError as refused:
        assert budget == "80%" and "budget" in str(refused)
        planned = native.schedule(text, built.plugin, "linalg", "none")
    after = native.run(planned, built)
    assert after["bits"] == before["bits"]
    assert_kept(planned.promised, after["peak_bytes"])
    assert after["peak_bytes"] <= before["peak_bytes"] * (1 + TOLERANCE)


def test_fences_and_markers_may_go_right_before_bufferization(built, monkeypatch):
    """What `remat-lower` leaves is the schedule in the order of the operations alone."""
    with_fences = native.LEVELS["linalg"]
    monkeypatch.setitem(native.LEVELS, "linalg", lambda remat: [*with_fences(remat), "remat-lower"])
    planned = native.schedule(source("unet"), built.plugin, "linalg", "60%", DETERMINISTIC)
    after = native.run(planned)
    assert planned.recomputed == 0
    assert after["bits"] == unmodified("unet")["bits"]
    assert_kept(planned.promised, after["peak_bytes"])


@pytest.mark.parametrize(("function", "budget"), PLACED)
def test_a_placed_function_takes_its_block_to_the_byte_and_computes_the_same_bits(built, function, budget):
    planned = native.schedule(source(function), built.plugin, "linalg", budget, "step-limit=20000")
    # Requests beyond this size are mapped by themselves, so what `malloc` adds to the block is known.
    mapped = {"MALLOC_MMAP_THRESHOLD_": "65536"}
    loose = native.run(planned, built, to_buffers=native.RESULTS_TO_ARGUMENTS, **mapped)
    placed = native.run(planned, built, to_buffers=[*native.RESULTS_TO_ARGUMENTS, *native.PLACE], **mapped)
    assert placed["bits"] == loose["bits"] == unmodified(function)["bits"]
    assert placed["output_bytes"] == 0
    block = native.block(planned, built.plugin)
    assert placed["peak_bytes"] == mapped_bytes(block)
    assert placed["peak_bytes"] < loose["peak_bytes"]
    if budget:
        assert block <= planned.promised


def mapped_bytes(requested, alignment=64, page=4096, header=16):
    """Bytes that glibc sets aside for a mapped request of `memref.alloc`, which asks for room to align within."""
    return -(-(requested + alignment + header) // page) * page - header


def test_buffers_freed_late_are_seen(built):
    """Without the pass that moves deallocations up, the same schedule takes more than it promises."""
    planned = native.schedule(source("chain"), built.plugin, "linalg", "60%", DETERMINISTIC)
    late = [stage for stage in native.TO_BUFFERS if "liveness" not in stage]
    after = native.run(planned, built, to_buffers=late)
    assert after["bits"] == unmodified("chain")["bits"]
    assert after["peak_bytes"] > 1.5 * planned.promised


def test_merging_after_lowering_costs_memory_unless_results_have_buffers_of_their_own(monkeypatch):
    """Why the pipeline has `empty-tensor-to-alloc-tensor`: `cse` merges what results are written into."""
    monkeypatch.setattr(native, "OWN_BUFFERS", [])
    merged = native.run(native.schedule(source("unet")))
    assert merged["bits"] == unmodified("unet")["bits"]
    assert merged["peak_bytes"] > 1.1 * unmodified("unet")["peak_bytes"]


def test_what_waits_in_the_second_memory_takes_no_heap(paging):
    text = source("pages")
    paged = native.schedule(text, paging.plugin, "tosa")
    after = native.run(paged, paging)
    assert_kept(paged.promised, after["peak_bytes"])
    tensor = 512 * 512 * 4
    assert (after["second_peak_bytes"], after["written_bytes"], after["read_bytes"]) == (
        3 * tensor,
        3 * tensor,
        3 * tensor,
    )
    before = native.run(native.schedule(in_memory(text)))
    assert after["bits"] == before["bits"]
    assert before["peak_bytes"] > 1.6 * paged.promised


@pytest.mark.parametrize("level", native.LEVELS)
def test_a_schedule_with_pages_takes_what_was_promised_of_either_memory(paging, level):
    options = f"device=desktop paging=sync {DETERMINISTIC}"
    planned = native.schedule(source("mlp"), paging.plugin, level, "40%", options)
    after = native.run(planned, paging)
    assert after["bits"] == unmodified("mlp")["bits"]
    assert_kept(planned.promised, after["peak_bytes"])
    assert after["written_bytes"] == planned.bytes_of("remat.page_out") > 0
    assert after["read_bytes"] == planned.bytes_of("remat.page_in") > 0
    assert 0 < after["second_peak_bytes"] <= after["written_bytes"]


def in_memory(text):
    """A function with pages, without them: what came back is what left."""
    for page, tensor in re.findall(r"(%\w+) = remat\.page_out (%\w+)", text):
        (back,) = re.findall(rf"(%\w+) = remat\.page_in {page} ", text)
        text = re.sub(rf"{back}\b", tensor, text)
    return "\n".join(line for line in text.splitlines() if "remat." not in line or line.startswith("func.func")) + "\n"


def test_the_cases_are_those_of_their_generator(tmp_path):
    native.subprocess.run([sys.executable, native.CASES / "generate.py", tmp_path], check=True)
    for function in [*BUDGETS, *TILED]:
        assert (tmp_path / f"{function}.mlir").read_text() == source(function), (
            f"run test/mlir/native/generate.py: {function}.mlir differs"
        )
