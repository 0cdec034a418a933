"""Training frameworks: the programs of their guide with and without the two lines, and what the guide says of the rest.

Each program trains twice, once with the lines marked `# added` and once without them.
"""

import functools
import importlib.util
import logging
import pathlib
import re
import sys

import pytest
import remat_opt.torch
import torch
from need import require
from remat_opt.torch import _check, _compiled, _peak
from snippets import blocks

GUIDE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "guides" / "frameworks.md"
ADDED = "# added"
PROGRAMS = [block.code for block in blocks(GUIDE.name, GUIDE.read_text()) if ADDED in block.code]
SEARCH = {"step_limit": 2000, "threads": 1, "time_limit": 600.0}
"""As little as keeps the budgets, and the same on every machine."""


def frameworks(code):
    return [name for name in ("transformers", "accelerate", "lightning", "diffusers") if f"from {name}" in code]


def needs(*names):
    for name in names:
        require(name, importlib.util.find_spec(name) is not None, f"{name} is not installed: nothing was trained with it")


@pytest.fixture(autouse=True)
def _elsewhere(monkeypatch, tmp_path):
    """What frameworks write lies in a folder of its own, and nothing is asked of a network."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(remat_opt.torch, "backend", functools.partial(remat_opt.torch.backend, **SEARCH))
    yield
    _forget_the_accelerator()


def _forget_the_accelerator():
    """Accelerate has one configuration for each process, which the first program decides."""
    state = sys.modules.get("accelerate.state")
    if state is not None:
        state.AcceleratorState._reset_state(reset_partial_state=True)


@pytest.fixture
def compiled(monkeypatch):
    """What was called last of each graph that was compiled, and with what."""
    calls = {}
    usual = _compiled.Compiled.__call__

    def call(self, *inputs):
        calls[self] = inputs
        return usual(self, *inputs)

    monkeypatch.setattr(_compiled.Compiled, "__call__", call)
    return calls


def planned(memory="60%"):
    return remat_opt.torch.backend(memory, inner="aot_eager")


def trained(code):
    """Losses and the model after a program has run."""
    _forget_the_accelerator()
    names = {"__name__": "program"}
    exec(compile(code, str(GUIDE), "exec"), names)  # noqa: S102
    return names["losses"], names["model"]


def without_additions(code):
    return re.sub(rf"^( *).*{ADDED}$", r"\1pass", code, flags=re.M)


def assert_same(mine, plain):
    (losses, model), (expected, original) = mine, plain
    assert losses == expected
    assert len(losses) >= 2
    pairs = list(zip(model.state_dict().items(), original.state_dict().items(), strict=True))
    assert all(name == other and torch.equal(one, two) for (name, one), (other, two) in pairs)


def assert_kept(compiled, reports):
    """Every graph is planned, has the bits of the model, and takes what was promised and no more."""
    assert [report.fallback for report in reports] == [None] * len(reports)
    assert reports
    assert {report.gradients for report in reports} == {"same bits"}
    for graph, inputs in compiled.items():
        report = graph.report
        assert not [note for note in report.notes if "no plan keeps" in note]
        assert report.recomputes > 0
        with _check.Trial(inputs).prepared(graph._run) as run:
            run()
            taken = _peak.peak_above(run, "cpu")
        promised = report.promised_bytes - report.external_bytes
        assert promised < report.baseline_bytes - report.external_bytes
        assert 0.5 * promised < taken <= promised


@pytest.mark.parametrize("code", PROGRAMS, ids=lambda code: "-".join(frameworks(code)) or "recipe")
def test_two_lines_change_the_memory_of_a_program_alone(code, compiled):
    needs(*frameworks(code))
    assert len(re.findall(ADDED, code)) == 2
    plain = trained(without_additions(code))
    assert not remat_opt.torch.reports()
    assert_same(trained(code), plain)
    assert_kept(compiled, remat_opt.torch.reports())


def test_trainer_with_all_that_changes_a_step(compiled):
    """Autocast, sums of gradients, evaluation between steps, a smaller last batch, a loss outside of the model."""
    needs("transformers", "accelerate")
    from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

    def train(backend):
        torch.manual_seed(0)
        sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2}
        model = LlamaForCausalLM(LlamaConfig(vocab_size=64, attention_dropout=0.1, **sizes))
        if backend is not None:
            model.compile(backend=backend)
        data = [{"input_ids": one, "labels": one} for one in torch.randint(64, (40, 64))]
        arguments = TrainingArguments(
            "trained",
            per_device_train_batch_size=16,
            gradient_accumulation_steps=2,
            num_train_epochs=1,
            bf16=True,
            label_smoothing_factor=0.1,
            eval_strategy="steps",
            eval_steps=1,
            logging_steps=1,
            save_strategy="no",
            report_to="none",
            use_cpu=True,
        )
        trainer = Trainer(model=model, args=arguments, train_dataset=data, eval_dataset=data[:16])
        trainer.train()
        return [entry[key] for entry in trainer.state.log_history for key in ("loss", "eval_loss") if key in entry], model

    plain = train(None)
    backend = planned("80%")
    assert_same(train(backend), plain)
    assert_kept(compiled, backend.reports)
    # The whole batch, and the last one.
    assert len(backend.reports) == len(compiled) == 2


def test_the_names_of_backends_that_accelerate_takes_are_its_own():
    needs("transformers", "accelerate")
    from accelerate.utils import TorchDynamoPlugin
    from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

    with pytest.raises(ValueError, match="REMAT"):
        TorchDynamoPlugin(backend="remat", options={"memory": "60%"})
    sizes = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=8, **sizes))
    arguments = TrainingArguments("trained", torch_compile_backend="remat", use_cpu=True, report_to="none")
    with pytest.raises(ValueError, match="REMAT"):
        Trainer(model=model, args=arguments)


def test_a_partitioner_is_an_option_of_inductor_in_accelerate():
    needs("accelerate")
    from accelerate.utils import TorchDynamoPlugin

    partitioner = remat_opt.torch.partitioner("60%")
    plugin = TorchDynamoPlugin(backend="inductor", options={"custom_partitioner_fn": partitioner})
    given = plugin.to_kwargs()
    assert given["backend"] == "inductor"
    (name,) = given["options"]
    assert name in torch._inductor.list_options()
    assert given["options"][name].uuid() == partitioner.uuid()


@pytest.mark.parametrize("cure", [None, "loss_type", "ignored"])
def test_a_model_that_logs_while_it_is_traced_is_cut(cure, monkeypatch):
    needs("transformers")
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(vocab_size=64, n_positions=32, n_embd=16, n_layer=0, n_head=2)
    if cure == "ignored":
        ignored = {*torch._dynamo.config.ignore_logging_functions, logging.Logger.warning_once}
        monkeypatch.setattr(torch._dynamo.config, "ignore_logging_functions", ignored)
    model = GPT2LMHeadModel(config)
    if cure == "loss_type":
        model.loss_type = "ForCausalLM"
    model.compile(backend=(backend := planned("80%")))
    tokens = torch.randint(64, (16, 32))
    model(input_ids=tokens, labels=tokens).loss.backward()
    if cure is None:
        assert backend.reports[0].fallback is None and "a part of a step" in backend.reports[0].notes[0]
    else:
        assert [report.fallback for report in backend.reports] == [None]


def test_a_lightning_module_that_logs_is_cut_and_trains_all_the_same():
    needs("lightning")
    (code,) = (code for code in PROGRAMS if "from lightning" in code)
    plain, _ = trained(without_additions(code))
    code = without_additions(code).replace("module = Regression()", "module = torch.compile(Regression(), backend=backend)")
    backend = planned()
    names = {"__name__": "program", "backend": backend}
    exec(compile(code, str(GUIDE), "exec"), names)  # noqa: S102
    assert names["losses"] == plain
    assert backend.reports
    planned_ones = [report for report in backend.reports if report.fallback is None]
    assert planned_ones and all(report.gradients == "same bits" for report in planned_ones)
    assert all("graph break" in report.fallback for report in backend.reports if report.fallback is not None)


class Layers(torch.nn.Sequential):
    def __init__(self, reentrant=None):
        layers = [torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.GELU(), torch.nn.Tanh()) for _ in range(3)]
        super().__init__(*layers)
        self.reentrant = reentrant

    def forward(self, x):
        for layer in self:
            x = layer(x) if self.reentrant is None else torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=self.reentrant)
        return x


def stepped(model, backend):
    """Losses of two steps, and the model."""
    torch._dynamo.reset()
    if backend is not None:
        model.compile(backend=backend)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(2):
        loss = model(torch.randn(1024, 32, generator=torch.Generator().manual_seed(1), requires_grad=True)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses, model


def in_backward(parameter):
    parameter.data.add_(parameter.grad, alpha=-0.1)
    parameter.grad = None


HOOKS = {
    "none": lambda model: None,
    "of parameters": lambda model: [one.register_hook(lambda gradient: gradient / 2) for one in model.parameters()],
    "updates in the backward": lambda model: [
        one.register_post_accumulate_grad_hook(in_backward) for one in model.parameters()
    ],
    "of a tensor": lambda model: model[1].register_forward_hook(
        lambda module, given, result: result.register_hook(lambda gradient: 2 * gradient) and None
    ),
    "of the forward": lambda model: model[1].register_forward_pre_hook(lambda module, given: (2 * given[0],)),
    "weight norm": lambda model: torch.nn.utils.parametrizations.weight_norm(model[1][0]),
    "frozen": lambda model: model[0].requires_grad_(False),
    "tied": lambda model: setattr(model[2][0], "weight", model[0][0].weight),
}


@pytest.mark.parametrize("hooked", HOOKS.values(), ids=HOOKS)
def test_what_frameworks_do_to_a_model_is_planned(hooked, compiled):
    torch.manual_seed(0)
    model = Layers()
    hooked(model)
    original = Layers()
    hooked(original)
    original.load_state_dict(model.state_dict())
    backend = planned("85%")
    assert_same(stepped(model, backend), stepped(original, None))
    assert_kept(compiled, backend.reports)


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpoints_in_the_model_leave_the_choice_to_the_plan(reentrant, compiled):
    models = [Layers(reentrant), Layers(reentrant), Layers()]
    for other in models[1:]:
        other.load_state_dict(models[0].state_dict())
    marked, original, unmarked = models
    first, second = planned("85%"), planned("85%")
    assert_same(stepped(marked, first), stepped(original, None))
    stepped(unmarked, second)
    assert_kept(compiled, first.reports)
    assert first.reports[0].baseline_bytes == second.reports[0].baseline_bytes


def test_a_hook_that_reads_a_number_cuts_the_model_and_says_so():
    seen = []
    model, original = Layers(), Layers()
    original.load_state_dict(model.state_dict())
    model[1].register_forward_hook(lambda module, given, result: seen.append(result.detach().mean().item()))
    backend = planned()
    assert_same(stepped(model, backend), stepped(original, None))
    assert len(seen) == 2
    assert backend.reports
    assert all("graph break" in report.fallback for report in backend.reports)


def test_hooks_of_the_backward_of_a_part_leave_nothing_to_plan():
    seen = []
    model, original = Layers(), Layers()
    original.load_state_dict(model.state_dict())
    model[1].register_full_backward_hook(lambda module, inner, outer: seen.append(outer[0].shape))
    backend = planned()
    assert_same(stepped(model, backend), stepped(original, None))
    assert len(seen) == 2
    assert all(report.fallback is not None for report in backend.reports)


def test_dropout_under_autocast_has_the_bits_of_pytorchs_own_compiled_step():
    """Eager PyTorch rounds differently, plan or not."""

    def gradients(backend):
        torch.manual_seed(0)
        model = Layers()
        model.insert(1, torch.nn.Dropout(0.1))
        model.compile(backend=backend)
        with torch.autocast("cpu", torch.bfloat16):
            results = model(torch.randn(1024, 32, requires_grad=True))
        results.float().square().mean().backward()
        return [one.grad for one in model.parameters()]

    backend = remat_opt.torch.backend("90%", inner="aot_eager")
    mine, theirs = gradients(backend), gradients("aot_eager")
    assert all(torch.equal(one, two) for one, two in zip(mine, theirs, strict=True))
    (report,) = backend.reports
    assert report.fallback is None and report.gradients == "close"
    assert "the bits are those of PyTorch's backend aot_eager, not those of the model" in report.notes
