"""Memory policies of torchtitan's graph trainer, with ours among them, on a CPU.

    python test/torch/titan.py                      the table of `docs/guides/pytorch.md`; needs torchtitan 0.3
    python test/torch/titan.py POLICY [MEMORY]      none, default, full, or remat_opt within a share or `min`

Each row is a process whose heap is counted: the peak of forward and backward of a small Llama above what is there
before, the worst of three steps after the first, and the bits of its loss and gradients.
"""

import importlib.util
import json
import pathlib
import sys

import step

BATCH, LENGTH, STEPS = 4, 512, 4
ROWS = [("none",), ("default",), ("full",), ("remat_opt", "60%"), ("remat_opt", "40%"), ("remat_opt", "min")]


def measure(policy, memory="60%"):
    """Peak in bytes, seconds of processor time, bits and recomputes of a policy."""
    return step.metered(__file__, policy, REMAT_OPT_MEMORY=memory)


def trainer_of(policy):
    """A trainer as those of torchtitan's own tests, and its model."""
    import torch
    from torchtitan.experiments.graph_trainer.common_utils import annotate_module_fqns
    from torchtitan.experiments.graph_trainer.llama3 import model_registry
    from torchtitan.experiments.graph_trainer.registry import register_pass_pipeline
    from torchtitan.experiments.graph_trainer.tests._trainer_test_utils import build_minimal_trainer
    from torchtitan.experiments.graph_trainer.trainer import GraphTrainer

    spec = importlib.util.spec_from_file_location(
        "torchtitan_policy", pathlib.Path(__file__).parents[2] / "examples" / "torchtitan_policy.py"
    )
    ours = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(ours)
    ours.register()
    registry = model_registry("debugmodel", attn_backend="sdpa")
    torch.manual_seed(0)
    model = registry.model.build()
    with torch.no_grad():
        model.init_states(buffer_device=None)
    model.train()
    annotate_module_fqns(model)
    without = ["tag_with_memory_policy_pass"] if policy == "none" else []
    trainer = build_minimal_trainer(model, registry.model, GraphTrainer, compile_disable_passes=without)
    register_pass_pipeline("sums_apart")(_passes)
    trainer.config.compile.pass_pipeline = "sums_apart"
    trainer.device = torch.device("cpu")
    if policy != "none":
        trainer.config.compile.memory_policy = policy
    return trainer, model


def _passes(traced, config, **options):
    """torchtitan's passes on sums of gradients without a name.

    PyTorch 2.15 gives these the number of the loss's last op, so torchtitan 0.3 takes them for a part of the loss, and
    recomputes nothing before the last of them, whatever the policy.
    """
    from torchtitan.experiments.graph_trainer.passes import construct_default_graph_passes

    for node in traced.gm.graph.nodes:
        custom = node.meta.get("custom", {})
        if node.meta.get("autograd_backward") and "aten.add" in str(node.target) and custom.get("module_fqn") == "loss":
            node.meta["custom"] = {name: value for name, value in custom.items() if name != "module_fqn"}
    return construct_default_graph_passes(traced, config, **options)


def child(policy):
    """Measures in this process."""
    import torch
    from remat_opt import torch as remat

    torch.set_num_threads(1)
    trainer, model = trainer_of(policy)
    tokens, labels = torch.randint(0, 2048, (2, BATCH, LENGTH))
    positions = torch.arange(LENGTH, dtype=torch.int32).expand(BATCH, LENGTH)
    losses = []

    def run():
        loss = trainer.forward_backward_step(
            input_dict={"input": tokens, "positions": positions},
            labels=labels,
            global_valid_tokens=torch.tensor(float(labels.numel())),
        )
        losses[:] = [loss.detach()]

    peaks, times = step.peaks_of(run, model, STEPS)
    bits = step.digest({"loss": losses[0]} | {name: one.grad for name, one in model.named_parameters()})
    found = {"peak": max(peaks[1:]), "seconds": min(times[1:]), "bits": bits}
    found["recomputes"] = [one.recomputes for one in remat.reports()]
    print(json.dumps(found))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(json.loads(sys.argv[2]))
    elif len(sys.argv) > 1:
        print(json.dumps(measure(*sys.argv[1:]), indent=2))
    else:
        plain = None
        for row in ROWS:
            found = measure(*row)
            plain = plain or found["bits"]
            same = "same bits" if found["bits"] == plain else "differs bitwise"
            print(f"{' '.join(row):16} {found['peak'] / 1e6:7.1f} MB {found['seconds']:5.2f} s  {same}", flush=True)
