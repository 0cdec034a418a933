"""ExecuTorch programs run with our offsets, in the lowest block there is."""

import random
import types

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("executorch.exir", reason="executorch is not installed: its hook was not tested")
remat_opt = pytest.importorskip("remat_opt")

from executorch.exir.memory_planning import Verifier, greedy  # noqa: E402
from executorch.exir.tensor import TensorSpec  # noqa: E402
from exported import MODELS, program, sizes  # noqa: E402
from remat_opt.executorch import memory_planner  # noqa: E402


@pytest.mark.parametrize("name", list(MODELS)[:2])
def test_a_program_takes_its_load_and_keeps_its_results(name):
    planner = memory_planner(step_limit=100_000)
    ours, x, expected = program(name, planner)
    theirs, _, _ = program(name, greedy)
    (placement,) = planner.placements
    assert sizes(ours) == [0, placement.height]
    assert placement.height == placement.load and placement.is_optimal
    assert sizes(ours)[1] <= sizes(theirs)[1]
    exported = ours.exported_program()
    Verifier(exported.graph_module, True, True, True, exported.graph_signature).verify_storage_reuse()
    runtime = pytest.importorskip("executorch.runtime").Runtime.get()
    mine, other = (runtime.load_program(p.buffer).load_method("forward").execute([x])[0] for p in (ours, theirs))
    assert torch.equal(mine, other)
    assert torch.allclose(mine, expected, atol=1e-5)


def test_greedy_and_ours_compete():
    both, _, _ = program("transformer block", greedy, memory_planner())
    one, _, _ = program("transformer block", memory_planner())
    assert sizes(both) == sizes(one)


def spec(elements, first, last, memory=None):
    made = TensorSpec(torch.float32, torch.Size([elements]))
    made.lifetime, made.mem_id = [first, last], memory
    return made


def plan(specs, alignment=16, reserved=(), padding=0):
    module = types.SimpleNamespace(input_mem_buffer_sizes=list(reserved))
    return memory_planner(step_limit=10_000)(alignment, specs, module, None, padding)


@pytest.mark.parametrize("seed", range(20))
def test_random_specs_lie_apart_in_their_memories(seed):
    draw = random.Random(seed)
    alignment = draw.choice([1, 4, 16, 64])
    specs = []
    for _ in range(draw.randint(1, 25)):
        first = draw.randint(0, 20)
        specs.append(spec(draw.randint(0, 99), first, first + draw.randint(0, 9), draw.choice([None, 1, 3])))
    reserved, padding = draw.choice([[], [0, 100], [0, 0, 8, 7]]), draw.choice([0, 64])
    made = plan(specs, alignment, reserved, padding)
    assert list(made.spec_dict) == specs
    for at, one in enumerate(specs):
        where = made.spec_dict[one]
        start = reserved[where.mem_id] if where.mem_id < len(reserved) else 0
        assert where.mem_id == (one.mem_id or 1)
        assert where.mem_offset % alignment == 0 and where.mem_offset >= start
        assert where.mem_offset + one.nbytes() + padding <= made.bufsizes[where.mem_id] or one.nbytes() == 0
        for other in specs[:at]:
            there = made.spec_dict[other]
            apart = (
                where.mem_offset + one.allocated_memory <= there.mem_offset
                or there.mem_offset + other.allocated_memory <= where.mem_offset
            )
            assert apart or where.mem_id != there.mem_id or not Verifier.lifetime_overlap(one, other)
    for memory, size in enumerate(reserved):
        assert made.bufsizes[memory] >= size


def test_steps_are_counted_to_the_last_one():
    early, late = spec(8, 0, 3), spec(8, 3, 5)
    assert plan([early, late]).bufsizes == [0, 64]
    late.lifetime = [4, 5]
    assert plan([early, late]).bufsizes == [0, 32]


def test_a_spec_in_the_storage_of_another_follows_it():
    outer, below, inner, innermost = spec(16, 0, 9), spec(16, 0, 9), spec(8, 2, 5), spec(4, 3, 4)
    inner.storage_base, inner.storage_base_offset = outer, 32
    innermost.storage_base, innermost.storage_base_offset = inner, 16
    made = plan([innermost, inner, below, outer])
    assert made.bufsizes == [0, 128]
    start = made.spec_dict[outer].mem_offset
    assert made.spec_dict[inner].mem_offset == start + 32
    assert made.spec_dict[innermost].mem_offset == start + 48


def test_no_specs_take_no_memory():
    assert plan([]).bufsizes == [0, 0]
    assert plan([], reserved=[0, 96], padding=64).bufsizes == [0, 160]


def test_wrong_specs_are_rejected():
    with pytest.raises(remat_opt.ModelError, match="no lifetime"):
        plan([TensorSpec(torch.float32, torch.Size([4]))])
    outer, inner = spec(4, 0, 9), spec(8, 2, 5)
    inner.storage_base = outer
    with pytest.raises(remat_opt.ModelError, match="more than the 16 bytes"):
        plan([outer, inner])
    inner = spec(4, 2, 5)
    inner.storage_base = outer
    with pytest.raises(remat_opt.ModelError, match="not planned"):
        plan([inner])
    inner.storage_base, inner.storage_base_offset = spec(8, 0, 9), 8
    with pytest.raises(remat_opt.ModelError, match="multiple of 16"):
        plan([inner.storage_base, inner])
    outer, inner = spec(4, 0, 9), spec(4, 0, 9)
    outer.storage_base, inner.storage_base = inner, outer
    with pytest.raises(remat_opt.ModelError, match="inside itself"):
        plan([outer, inner])
