"""Writes what PyTorch's own partitioner makes of the graphs of `test/graphs/training`, as plans in `others` beside them.

    python test/torch/partitioners.py [NAME ...]

Each is the forward and the backward that `min_cut_rematerialization_partition` gives, node by node, then all updates, as
an optimizer runs them after the backward. `min-cut` is its default, `min-cut-0.5` and `min-cut-0.2` are for these values
of `activation_memory_budget`. Values are freed after their last use.
"""

import json
import operator
import pathlib
import sys

import torch
from graphs import FOLDER, OPTIMIZERS
from models import make
from torch import fx
from torch._functorch import config
from torch._functorch.partitioners import min_cut_rematerialization_partition

import remat_opt
from remat_opt.torch._trace import trace

BUDGETS = {"min-cut": 1.0, "min-cut-0.5": 0.5, "min-cut-0.2": 0.2}


def halves(name, budget):
    """The forward and the backward of a model as PyTorch splits them."""
    traced = trace(*make(name))
    gradients = [traced.gradients.get(parameter) for parameter in traced.parameters]
    inputs = len(traced.buffers) + len(traced.inputs)
    forward = [traced.loss, *traced.new_buffers.values()]
    traced.graph.output((*forward, *gradients, *[None] * inputs))
    joint = fx.GraphModule(traced.root, traced.graph)
    with config.patch(activation_memory_budget=budget):
        return min_cut_rematerialization_partition(joint, (), num_fwd_outputs=len(forward))


class Sequence:
    """Runs of ops of a problem, as a plan: results are freed after their last use."""

    def __init__(self, document):
        self.document = document
        self.ops = {op["name"]: op for op in document["ops"]}
        self.runs = []

    def run(self, name, saved=frozenset()):
        """Appends a run, if the problem has the op.

        `saved` are storages that stay what they were before, whatever the run makes.
        """
        if name in self.ops:
            self.runs.append((self.ops[name], saved))

    def rest(self):
        """What is missing, in the order of the problem."""
        there = {op["name"] for op, _ in self.runs}
        for name in self.ops:
            if name not in there:
                self.run(name)

    def plan(self):
        tensors, storages = self.document["tensors"], self.document["storages"]
        of = [tensor["storage"] for tensor in tensors]
        # For each storage the run that made what is there now, and the last one that needed it.
        ends, made, last = {}, {}, {}

        def close(storage):
            ends.setdefault(last[storage], []).append(storage)

        for index, (op, saved) in enumerate(self.runs):
            for tensor in op["reads"]:
                last[of[tensor]] = index
            for tensor in op["defines"]:
                storage = of[tensor]
                is_view = storages[storage]["root"] != tensor
                if storages[storage]["role"] == "transient" and not is_view and storage not in saved:
                    if storage in made:
                        close(storage)
                    made[storage] = index
                last[storage] = index
        for storage in made:
            close(storage)
        steps, done = [], set()
        for index, (op, _) in enumerate(self.runs):
            steps.append({"op": "recompute" if op["name"] in done else "compute", "node": op["name"]})
            done.add(op["name"])
            for storage in sorted(ends.get(index, ())):
                if storages[storage]["bytes"]:
                    steps.append({"op": "free", "tensor": tensors[storages[storage]["root"]]["name"]})
        return steps


def peak(document, steps):
    """Most bytes that are resident at a step."""
    tensors, storages = document["tensors"], document["storages"]
    ops = {op["name"]: op for op in document["ops"]}
    roots = {tensors[storage["root"]]["name"]: index for index, storage in enumerate(storages)}
    resident, highest = set(), 0
    for step in steps:
        if step["op"] == "free":
            resident.remove(roots[step["tensor"]])
            continue
        op = ops[step["node"]]
        made = {tensors[tensor]["storage"] for tensor in op["defines"]}
        made = {one for one in made if storages[one]["root"] in op["defines"] and storages[one]["role"] != "external"}
        held = [*resident, *made]
        highest = max(highest, sum(storages[one]["bytes"] for one in held) + op.get("workspace", 0))
        resident |= made
    return highest


def plan(name, budget):
    """The plan of a partition of a model, without figures."""
    document = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    forward, backward = halves(name, budget)
    sequence = Sequence(document)
    for node in forward.graph.nodes:
        if node.op == "call_function" and node.target is not operator.getitem:
            sequence.run(node.name)
    storages = {tensor["name"]: tensor["storage"] for tensor in document["tensors"]}
    origin = {node.name: node for node in forward.graph.nodes if node.op == "call_function"}
    saved = set()
    for node in backward.graph.find_nodes(op="placeholder"):
        source = origin.get(node.name)
        if source is not None and source.target is operator.getitem:
            saved.add(storages.get(f"{source.args[0].name}#{source.args[1]}"))
        elif source is not None:
            saved.add(storages.get(node.name))
    sequence.run("loss_gradient")
    for node in backward.graph.nodes:
        if node.op == "call_function" and node.target is not operator.getitem:
            sequence.run(node.name, frozenset(saved))
    sequence.rest()
    steps = sequence.plan()
    return {
        "format": "remat-plan/2",
        "model": name,
        "accounting": document["accounting"],
        "order": "free",
        "peak_bytes": peak(document, steps),
        "duration": sum(op["duration"] for op, _ in sequence.runs),
        "steps": steps,
    }


def main(names):
    torch.set_num_threads(1)
    folder = FOLDER / "others"
    folder.mkdir(exist_ok=True)
    for name in names or OPTIMIZERS:
        graph = FOLDER / f"{name}.json"
        once = remat_opt.solve(graph, "none", order="free")
        baseline = {key: once[key] for key in ("baseline_peak_bytes", "baseline_duration")}
        for system, budget in BUDGETS.items():
            path = folder / f"{name}.{system}.json"
            found = {**plan(name, budget), **baseline}
            path.write_text(json.dumps(found, separators=(",", ":")) + "\n", encoding="utf-8")
            # Raises an error where the checker finds anything else.
            remat_opt.verify(graph, path)
            again = found["duration"] / found["baseline_duration"] - 1
            print(f"{name} {system}: {found['peak_bytes'] / 1e6:.1f} MB, {100 * again:+.2f} %")


if __name__ == "__main__":
    main(sys.argv[1:])
