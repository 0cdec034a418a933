"""Training through `torch.compile`: peaks, gradients, and what happens where no plan can be made."""

import copy
import logging
import pickle

import models
import numpy
import pytest
import remat_opt.torch
import torch
from models import SEARCH
from need import NIGHTLY
from remat_opt import UsageError
from remat_opt.torch import _backend, _code, _compiled, _measure, _partition
from step import gradients, measure
from torch import nn
from torch.utils.checkpoint import checkpoint


def small():
    torch.manual_seed(0)
    return models.Chain(), torch.randn(512, 32)


def train(model, *inputs, memory="min", **keywords):
    """One step with a plan; loss and gradients, those without a plan, and the backend."""
    plain = gradients(model, model, inputs)
    backend = remat_opt.torch.backend(memory, "aot_eager", **(SEARCH | keywords))
    return gradients(model, torch.compile(model, backend=backend), inputs), plain, backend


def equal(mine, plain):
    return mine.keys() == plain.keys() and all(torch.equal(mine[name], one) for name, one in plain.items())


PROMISED = [("gpt-dropout-tiny", "70%"), ("unet-tiny", "50%"), ("resnet-tiny", "70%")]
LARGER = [("vit-tiny", "50%"), ("gpt", "50%"), ("unet", "50%"), ("resnet18", "85%")]
"""Models of the same kinds."""
OBJECTS = 16 << 10
"""Bytes by which a promise may exceed a peak whatever its size: objects of tensors are bounded from above, which shows in a step
of one megabyte."""


@pytest.mark.parametrize(("model", "memory"), PROMISED + (LARGER if NIGHTLY else []))
def test_steps_keep_their_promise_and_their_bits(model, memory):
    step = measure(model, "aot_eager", memory, **SEARCH)
    (report,) = step["reports"]
    promised = report["promised_bytes"] - report["external_bytes"]
    assert 0.99 * promised - OBJECTS <= step["peak"] <= promised
    assert step["bits"]
    assert report["fallback"] is None
    assert report["gradients"] == "same bits"
    assert promised < 0.95 * (report["baseline_bytes"] - report["external_bytes"])


def test_a_loop_of_small_ops_keeps_its_promise():
    """The objects of its tensors take more than what is rounded up."""
    step = measure("loop-tiny", "aot_eager", "90%", **SEARCH)
    (report,) = step["reports"]
    assert report["ops"] > 1000 and report["fallback"] is None
    assert step["bits"] and step["peak"] + report["external_bytes"] <= report["promised_bytes"]


def test_a_budget_in_bytes_is_the_total():
    whole = measure("unet-tiny", "aot_eager", "100%", **SEARCH)["reports"][0]
    budget = int(0.7 * whole["baseline_bytes"])
    step = measure("unet-tiny", "aot_eager", budget, **SEARCH)
    (report,) = step["reports"]
    assert report["budget_bytes"] == budget
    assert step["peak"] + report["external_bytes"] <= report["promised_bytes"] <= budget
    assert report["recomputes"] > 0


@pytest.mark.parametrize("name", ["bert", "convnext"] if NIGHTLY else ["convnext"])
def test_other_networks_keep_their_bits(name):
    model, inputs = models.make(name)
    mine, plain, backend = train(model, *inputs, memory="60%", strict=True)
    assert equal(mine, plain)
    assert backend.reports[0].gradients == "same bits"


def test_running_statistics_are_updated_once_for_each_step():
    torch.manual_seed(0)
    layers = (nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.BatchNorm2d(8))
    plain = nn.Sequential(*layers)
    planned = copy.deepcopy(plain)
    compiled = torch.compile(planned, backend=remat_opt.torch.backend("min", "aot_eager", strict=True, **SEARCH))
    for _ in range(3):
        x = torch.randn(4, 3, 16, 16)
        plain(x).square().mean().backward()
        compiled(x).square().mean().backward()
    theirs = planned.state_dict()
    assert all(torch.equal(one, theirs[name]) for name, one in plain.state_dict().items())
    assert all(torch.equal(a.grad, b.grad) for a, b in zip(plain.parameters(), planned.parameters()))


def test_random_numbers_go_on_as_without_a_plan():
    model, x = nn.Sequential(nn.Linear(32, 32), nn.Dropout(0.5), nn.Tanh(), nn.Linear(32, 32)), torch.randn(64, 32)
    compiled = torch.compile(model, backend=remat_opt.torch.backend("min", "aot_eager", strict=True, **SEARCH))
    torch.manual_seed(3)
    expected = [model(x).sum().item() for _ in range(3)]
    torch.manual_seed(3)
    assert [compiled(x).sum().item() for _ in range(3)] == expected


class Checkpointed(nn.Module):
    """A part that is checkpointed in another one that is, with random numbers."""

    def __init__(self):
        super().__init__()
        self.outer, self.inner = nn.Linear(32, 32), nn.Linear(32, 32)

    def forward(self, x):
        return checkpoint(self._outer, x, use_reentrant=False).square().mean()

    def _outer(self, x):
        return checkpoint(self._inner, nn.functional.dropout(torch.tanh(self.outer(x)), 0.5), use_reentrant=False)

    def _inner(self, x):
        return torch.tanh(nn.functional.dropout(torch.tanh(self.inner(x)), 0.5))


def test_random_numbers_of_checkpointed_parts_are_those_of_the_model():
    torch.manual_seed(0)
    mine, plain, backend = train(Checkpointed(), torch.randn(256, 32), strict=True)
    assert equal(mine, plain)
    (report,) = backend.reports
    assert report.gradients == "same bits" and not any("not those of the model" in one for one in report.notes)


@pytest.mark.parametrize(("model", "draws"), [(Checkpointed(), True), (models.Chain(1), False)])
def test_random_numbers_of_checkpointed_parts_are_known_before_the_check(monkeypatch, model, draws):
    made = []
    first = _compiled.Partitioner
    monkeypatch.setattr(_compiled, "Partitioner", lambda *args, **more: made.append(first(*args, **more)) or made[-1])
    backend = remat_opt.torch.backend("min", "aot_eager", strict=True, check=False, **SEARCH)
    torch.compile(model, backend=backend)(torch.randn(8, 32)).backward()
    assert [one.draws for one in made] == [draws]


def test_a_budget_that_nothing_keeps_gives_the_lowest_peak_and_says_so(caplog):
    model, x = small()
    with caplog.at_level(logging.WARNING, "remat_opt"):
        mine, plain, backend = train(model, x, memory=1000)
    assert equal(mine, plain)
    report = backend.reports[0]
    assert report.promised_bytes > report.budget_bytes
    assert any("no plan keeps" in note for note in report.notes)
    assert "no plan keeps 1000 bytes, the lowest" in caplog.text


class Codes(nn.Module):
    """Codes that follow what they stand for, overwritten after they were read."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(32, 32)
        self.register_buffer("codes", torch.randn(32))

    def forward(self, x):
        y = self.layer(torch.tanh(x))
        near = torch.sigmoid(self.codes.sign() * 2)
        with torch.no_grad():
            self.codes.lerp_(y.mean(0), 0.1)
        return (torch.tanh(y) * torch.sigmoid(y * near)).square().mean()


def test_what_reads_a_buffer_never_runs_after_it_was_overwritten():
    torch.manual_seed(0)
    plain = Codes()
    planned, x = copy.deepcopy(plain), torch.randn(512, 32)
    backend = remat_opt.torch.backend("min", "aot_eager", check=False, **SEARCH)
    compiled = torch.compile(planned, backend=backend)
    for _ in range(3):
        plain(x).backward()
        compiled(x).backward()
    assert backend.reports[0].fallback is None and backend.reports[0].recomputes > 0
    assert torch.equal(plain.codes, planned.codes)
    assert torch.equal(plain.layer.weight.grad, planned.layer.weight.grad)


def test_wrong_gradients_are_found_and_not_used(monkeypatch, caplog):
    """A plan as a graph that computes something else: one clone reads another value."""
    emit = _partition.emit

    def wrong(*given):
        emitted = emit(*given)
        tanh = [node for node in emitted.graph.nodes if node.target is torch.ops.aten.tanh.default]
        tanh[1].target = torch.ops.aten.sin.default
        return emitted

    monkeypatch.setattr(_partition, "emit", wrong)
    model, x = small()
    with caplog.at_level(logging.WARNING, "remat_opt"):
        mine, plain, backend = train(model, x)
    assert equal(mine, plain)
    assert backend.reports[0].gradients == "wrong"
    assert backend.reports[0].promised_bytes is None
    assert "bits" in backend.reports[0].fallback
    assert "takes over" in caplog.text


def test_wrong_running_statistics_are_found(monkeypatch):
    """The gradients of a batch norm do not depend on them."""
    emit = _partition.emit

    def wrong(*given):
        emitted = emit(*given)
        norm = next(node for node in emitted.graph.nodes if "batch_norm_legit_functional" in str(node.target))
        norm.update_arg(6, 0.5)
        return emitted

    monkeypatch.setattr(_partition, "emit", wrong)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(1568, 1))
    backend = remat_opt.torch.backend("min", "aot_eager", **SEARCH)
    torch.compile(model, backend=backend)(torch.randn(4, 3, 16, 16)).sum().backward()
    assert backend.reports[0].gradients == "wrong"


def test_mixed_precision_keeps_its_bits():
    model, x = small()

    class Mixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = model

        def forward(self, x):
            with torch.autocast("cpu", torch.bfloat16):
                return self.inner(x)

    mine, plain, backend = train(Mixed(), x, strict=True)
    assert equal(mine, plain)
    assert backend.reports[0].gradients == "same bits"


def test_autocast_around_a_model_keeps_its_bits():
    model, x = small()
    backend = remat_opt.torch.backend("min", "aot_eager", strict=True, **SEARCH)
    compiled = torch.compile(model, backend=backend)

    def run(function):
        def step(x):
            with torch.autocast("cpu", torch.bfloat16):
                return function(x)

        return step

    mine, plain = gradients(model, run(compiled), (x,)), gradients(model, run(model), (x,))
    assert equal(mine, plain)
    assert backend.reports[0].gradients == "same bits"


def test_gradients_are_compared_with_the_planned_graph_where_the_model_does_not_fit(monkeypatch):
    monkeypatch.setattr(_compiled, "free_bytes", lambda device: 0)
    model, x = small()
    mine, plain, backend = train(model, x)
    assert equal(mine, plain)
    assert backend.reports[0].gradients == "same bits"
    assert any("op by op" in note for note in backend.reports[0].notes)


def test_failures_of_planning_do_not_break_training(monkeypatch, caplog):
    monkeypatch.setattr(_partition, "measure", lambda graph: 1 // 0)
    model, x = small()
    with caplog.at_level(logging.WARNING, "remat_opt"):
        mine, plain, backend = train(model, x)
    assert equal(mine, plain)
    assert "ZeroDivisionError" in backend.reports[0].fallback
    assert "takes over" in caplog.text


def test_failures_are_raised_where_that_is_asked_for(monkeypatch):
    monkeypatch.setattr(_partition, "measure", lambda graph: 1 // 0)
    model, x = small()
    with pytest.raises(Exception, match="division"):
        train(model, x, strict=True)


@pytest.mark.parametrize("dynamic", [None, True])
def test_a_smaller_last_batch_changes_nothing_for_the_full_ones(dynamic, monkeypatch):
    checked, check = [], _compiled.Compiled._try
    monkeypatch.setattr(_compiled.Compiled, "_try", lambda self, inputs: (checked.append(inputs), check(self, inputs)))
    model, x = small()
    backend = remat_opt.torch.backend("min", "aot_eager", strict=True, **SEARCH)
    compiled = torch.compile(model, backend=backend, dynamic=dynamic)
    for batch in (512, 512, 70, 512, 512):
        assert equal(gradients(model, compiled, (x[:batch],)), gradients(model, model, (x[:batch],)))
    assert all(one.fallback is None and one.gradients == "same bits" for one in backend.reports)
    full = [one for one in backend.reports if "with sizes 70" not in one.graph]
    assert len({one.promised_bytes for one in full}) == 1 and full[-1].graph.endswith("with sizes 512")
    (last,) = (one for one in backend.reports if "with sizes 70" in one.graph)
    assert last.promised_bytes < full[-1].promised_bytes < full[-1].baseline_bytes
    assert sum(one.calls for one in full) == 4 and last.calls == 1
    # What was checked before a smaller batch came is the same code afterwards.
    assert len(checked) == 2


def test_sizes_beyond_their_number_run_as_the_model_is(caplog):
    model, x = small()
    backend = remat_opt.torch.backend("min", "aot_eager", sizes=1, **SEARCH)
    compiled = torch.compile(model, backend=backend, dynamic=True)
    for batch in (70, 80, 90, 70):
        assert equal(gradients(model, compiled, (x[:batch],)), gradients(model, model, (x[:batch],)))
    planned, rest = backend.reports
    assert planned.calls == rest.calls == 2
    assert planned.fallback is None and "sizes=" in rest.fallback and rest.promised_bytes is None
    for sizes in (0, True, "2"):
        with pytest.raises(UsageError, match="sizes"):
            remat_opt.torch.backend("min", sizes=sizes)


def test_shapes_that_values_decide_fall_back_and_say_so():
    class Chooses(models.Chain):
        def forward(self, x):
            return super().forward(x[x[:, 0] > 0])

    model, x = Chooses(), torch.randn(64, 32)
    backend = remat_opt.torch.backend("min", "aot_eager", **SEARCH)
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        mine = gradients(model, torch.compile(model, backend=backend), (x,))
    assert equal(mine, gradients(model, model, (x,)))
    assert "dynamic shapes" in backend.reports[0].fallback


def test_other_shapes_have_plans_of_their_own():
    model, x = small()
    backend = remat_opt.torch.backend("min", "aot_eager", **SEARCH)
    compiled = torch.compile(model, backend=backend, dynamic=False)
    for inputs in (x, x[:64]):
        assert equal(gradients(model, compiled, (inputs,)), gradients(model, model, (inputs,)))
    one, two = backend.reports
    assert one.promised_bytes > two.promised_bytes


@pytest.mark.measures
def test_a_step_whose_ops_cannot_be_measured_is_planned_with_a_warning(monkeypatch, caplog, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(_measure, "_known", {})
    monkeypatch.setattr(_measure.sys, "executable", "/nonexistent/python")
    with caplog.at_level(logging.WARNING, logger="remat_opt"):
        mine, plain, backend = train(models.Chain(3, 48), torch.randn(257, 48))
    assert equal(mine, plain)
    assert any("workspace" in note for note in backend.reports[0].notes)
    assert "most ops could not be measured" in caplog.text


def test_ops_of_other_packages_are_planned_with_estimates():
    @torch.library.custom_op("remat_test::halve", mutates_args=())
    def halve(x: torch.Tensor) -> torch.Tensor:
        return x * 0.5

    halve.register_fake(torch.empty_like)
    halve.register_autograd(lambda context, grad: grad * 0.5)

    class Custom(models.Chain):
        def forward(self, x):
            return super().forward(halve(torch.tanh(x)))

    mine, plain, backend = train(Custom(), torch.randn(512, 32))
    assert equal(mine, plain)
    assert backend.reports[0].fallback is None
    assert any("halve" in name for name in backend.reports[0].estimated_ops)


class Hidden:
    """Masks that a generator of its own draws, which PyTorch knows nothing of."""

    generator = None

    @staticmethod
    def draw(x):
        return torch.from_numpy((Hidden.generator.random(tuple(x.shape)) < 0.5).astype("float32"))


_mask = torch.library.custom_op("remat_test::mask", Hidden.draw, mutates_args=(), schema="(Tensor x) -> Tensor")
_mask.register_fake(torch.empty_like)


class Masked(models.Chain):
    """Layers with masks between them, two of which are drawn from the same argument."""

    def forward(self, x):
        for layer in self.layers:
            x = torch.tanh(layer(x))
            x = x * _mask(x.detach()) * 2 + x * _mask(x.detach())
        return x.square().mean()


def masked(generator, **keywords):
    """A step with a plan and one without, which draw the same masks."""
    torch.manual_seed(0)
    model, x = Masked(4), torch.randn(256, 32)
    backend = remat_opt.torch.backend("min", "aot_eager", **(SEARCH | keywords))
    compiled, found = torch.compile(model, backend=backend), []
    compiled(x).backward()
    for run in (compiled, model):
        Hidden.generator = generator()
        found.append(gradients(model, run, (x,)))
    return *found, backend.reports[0]


def test_ops_of_other_packages_run_once_unless_they_may_run_again():
    def fresh():
        return numpy.random.default_rng(7)

    Hidden.generator = fresh()
    mine, plain, report = masked(fresh, check=False)
    assert equal(mine, plain)
    assert report.recomputes > 0 and report.fallback is None
    assert report.once_ops == ["remat_test::mask"] and "run once" in str(report)
    for names in (["remat_test::mask"], ["remat_test"]):
        torch._dynamo.reset()
        mine, plain, report = masked(fresh, check=False, recomputable=names)
        assert not equal(mine, plain) and report.once_ops == []
    with pytest.raises(UsageError, match="recomputable"):
        remat_opt.torch.backend("min", recomputable="remat_test::mask")


def test_what_differs_in_each_run_by_more_than_rounding_is_not_excused():
    """A generator that cannot be put back: nothing says whether the plan is right."""
    Hidden.generator = numpy.random.default_rng(7)
    mine, plain, report = masked(lambda: numpy.random.default_rng(7))
    assert equal(mine, plain)
    assert report.gradients == "wrong" and report.promised_bytes is None
    assert "in another run" in report.fallback


def test_numbers_of_numpy_are_drawn_as_without_a_check():
    def fresh():
        numpy.random.seed(3)
        return numpy.random

    Hidden.generator = fresh()
    mine, plain, report = masked(fresh, strict=True)
    assert equal(mine, plain)
    assert report.gradients == "same bits"


def test_inference_is_left_alone():
    model, x = small()
    backend = remat_opt.torch.backend("min", "aot_eager", **SEARCH)
    with torch.no_grad():
        assert torch.equal(torch.compile(model, backend=backend)(x), model(x))
    assert backend.reports == []


def test_results_that_are_no_scalars_have_gradients_too():
    model, x = nn.Sequential(nn.Linear(32, 64), nn.Tanh(), nn.Linear(64, 32), nn.Tanh()), torch.randn(128, 32)
    backend = remat_opt.torch.backend("min", "aot_eager", strict=True, **SEARCH)
    compiled = torch.compile(model, backend=backend)
    x = x.requires_grad_()
    (mine,) = torch.autograd.grad(compiled(x).cos().sum(), (x,))
    (plain,) = torch.autograd.grad(model(x).cos().sum(), (x,))
    assert torch.equal(mine, plain)


def test_the_second_process_finds_the_plan(monkeypatch):
    from remat_opt.torch import _plans

    model, x = small()
    train(model, x, strict=True)
    torch._dynamo.reset()
    monkeypatch.setattr(_plans, "solve", lambda *_, **__: pytest.fail("it was planned already"))
    mine, plain, _ = train(model, x, strict=True)
    assert equal(mine, plain)


def test_a_limit_of_steps_ends_the_search_at_the_same_plan(monkeypatch, tmp_path):
    monkeypatch.setattr(_measure, "_measured", lambda calls, device: dict.fromkeys(calls, "it is not measured"))
    found = []
    for number, steps in enumerate((20_000, 20_000, 100)):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / str(number)))
        torch._dynamo.reset()
        (report,) = train(*small(), step_limit=steps, strict=True)[2].reports
        found.append((report.promised_bytes, report.overhead, report.recomputes))
    one, same, shorter = found
    assert one == same and one[0] < shorter[0]


def test_reports_say_what_is_promised():
    model, x = small()
    _, _, backend = train(model, x, memory="70%")
    (report,) = backend.reports
    assert remat_opt.torch.reports() == [report]
    assert report.external_bytes < report.promised_bytes < report.baseline_bytes
    assert "promised" in str(report) and "same bits" in str(report)
    assert pickle.loads(pickle.dumps(report)) == report


def test_the_backend_has_a_name():
    """The entry point of the package, with the arguments of `backend` as options."""
    model, x = small()
    compile_remat = _backend.compile_remat
    if "remat" in torch._dynamo.list_backends(exclude_tags=()):
        compiled = torch.compile(model, backend="remat", options={"memory": "min", "inner": "aot_eager", **SEARCH})
    else:  # The package lies in a folder, and is not installed.
        compiled = torch.compile(model, backend=compile_remat, options={"memory": "min", "inner": "aot_eager", **SEARCH})
    assert equal(gradients(model, compiled, (x,)), gradients(model, model, (x,)))
    assert remat_opt.torch.reports()[-1].gradients == "same bits"
    for options, reason in (({}, "say how much"), ({"memory": "min", "colour": 1}, "no option 'colour'")):
        with pytest.raises(UsageError, match=reason):
            compile_remat(None, (), options=options)


def test_modes_and_options_of_the_compiler_configure_inductor(monkeypatch):
    used = []

    def compile(self, gm, *rest):
        used.append(self.options)
        return _code.op_by_op(gm, *rest)

    monkeypatch.setattr(_code.Inner, "compile", compile)
    model, x = small()
    backend = remat_opt.torch.backend("min", options={"epilogue_fusion": False}, **SEARCH)
    options = {"max-autotune": True, "epilogue_fusion": True}
    for keywords in ({"mode": "reduce-overhead"}, {"options": options}, {"mode": "default"}):
        torch._dynamo.reset()
        torch.compile(model, backend=backend, **keywords)(x).backward()
    assert used[0]["triton.cudagraphs"] and not used[0]["epilogue_fusion"]
    second = next(one for one in used if "max_autotune" in one)
    assert second["epilogue_fusion"] and "triton.cudagraphs" not in second
    assert "triton.cudagraphs" not in used[-1] and "max_autotune" not in used[-1]
    assert len(backend.reports) == 3


def test_modes_and_options_that_nobody_has_are_refused():
    model, x = small()
    for inner, keywords, reason in [
        ("aot_eager", {"mode": "max-autotune"}, "does not run here"),
        ("aot_eager", {"options": {"max_autotune": True}}, "does not run here"),
        ("inductor", {"options": {"colour": True}}, "no option 'colour'"),
        ("inductor", {"mode": "colour"}, "no mode 'colour', but"),
    ]:
        torch._dynamo.reset()
        backend = remat_opt.torch.backend("min", inner, **SEARCH)
        with pytest.raises(UsageError, match=reason):
            backend(None, (), **keywords)
