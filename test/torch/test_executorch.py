"""ExecuTorch programs run with our offsets, in the lowest block there is."""

import random
import types

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("executorch.exir", reason="executorch is not installed: its hook was not tested")
remat_opt = pytest.importorskip("remat_opt")

from executorch.exir import ExecutorchBackendConfig, to_edge  # noqa: E402
from executorch.exir.memory_planning import MemoryPlanningAlgorithmSuite, Verifier, greedy  # noqa: E402
from executorch.exir.passes import MemoryPlanningPass  # noqa: E402
from executorch.exir.tensor import TensorSpec  # noqa: E402
from remat_opt.executorch import memory_planner  # noqa: E402


class Attention(torch.nn.Module):
    """A transformer block without dropout."""

    def __init__(self, width=32):
        super().__init__()
        self.norm, self.out = torch.nn.LayerNorm(width), torch.nn.Linear(width, width)
        self.parts = torch.nn.ModuleList(torch.nn.Linear(width, width) for _ in range(3))
        self.mlp = torch.nn.Sequential(
            torch.nn.LayerNorm(width), torch.nn.Linear(width, 4 * width), torch.nn.GELU(), torch.nn.Linear(4 * width, width)
        )

    def forward(self, x):
        q, k, v = (part(self.norm(x)) for part in self.parts)
        x = x + self.out(torch.softmax(q @ k.transpose(-1, -2), -1) @ v)
        return x + self.mlp(x)


class Branches(torch.nn.Module):
    """Convolutions side by side, of sizes that do not fit each other."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.ModuleList(torch.nn.Conv2d(3, c, 3, padding=1) for c in (5, 9, 14))
        self.second = torch.nn.ModuleList(torch.nn.Conv2d(28, c, 1) for c in (3, 8, 17))

    def forward(self, x):
        for branches in (self.first, self.second):
            x = torch.cat([torch.relu(branch(x)) for branch in branches], 1)
        return x.mean((2, 3))


MODELS = {
    "attention": (Attention, (2, 12, 32)),
    "branches": (Branches, (1, 3, 20, 20)),
}


def program(name, *algorithms):
    """The program of a model planned by an algorithm, its input, and what the model itself gives."""
    torch.manual_seed(0)
    build, shape = MODELS[name]
    model, x = build().eval(), torch.randn(shape)
    planning = MemoryPlanningPass(memory_planning_algo=MemoryPlanningAlgorithmSuite(list(algorithms)))
    edge = to_edge(torch.export.export(model, (x,)))
    return edge.to_executorch(ExecutorchBackendConfig(memory_planning_pass=planning)), x, model(x)


def sizes(made):
    return made.exported_program().graph_module.meta["non_const_buffer_sizes"]


@pytest.mark.parametrize("name", MODELS)
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
    both, _, _ = program("attention", greedy, memory_planner())
    one, _, _ = program("attention", memory_planner())
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
