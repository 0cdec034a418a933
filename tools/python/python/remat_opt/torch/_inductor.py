"""The graphs that Inductor writes for its own simulator of memory."""

from __future__ import annotations

import json
import os
import pathlib
from typing import Any

from .._problem import Problem
from ..errors import ModelError
from ._graph import empty_document

_INPUTS = "__inputs__"
"""Name of the op that stands for inputs which a graph may free."""


def inductor_problem(path: str | os.PathLike[str]) -> Problem:
    """A graph of Inductor's scheduler as a problem.

    With `torch._inductor.config.reorder_for_peak_memory_debug`, Inductor writes a graph for every forward and backward
    into the trace of `TORCH_TRACE`; `tlparse` makes files of these (`model__0_forward_1_fused`).

    Nodes are ops in the order of the scheduler; results of an op with several are allocated by that op. Inputs that the
    graph may free are results of a first op, `__inputs__`, that runs once. The files have no times: the duration of an
    op is the number of bytes that it reads and writes.

    Args:
        path: The file.

    Raises:
        ModelError: The file is not of this form.
    """
    try:
        document = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
        return Problem(_Reader(document, pathlib.Path(path).stem).document)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelError(f"{path}: no graph of Inductor's memory planning ({type(error).__name__}: {error})") from error


class _Reader:
    def __init__(self, graph: dict[str, Any], name: str) -> None:
        self.buffers: dict[str, dict[str, Any]] = {one["name"]: one for one in graph["buffers"]}
        self.tensors: dict[str, int] = {}
        self.document = empty_document(name)
        self.parts = self._parts()
        if inputs := [one["name"] for one in graph["buffers"] if one["is_input"]]:
            self._op(_INPUTS, [], inputs, False)
        for node in graph["nodes"]:
            reads = dict.fromkeys(name for one in node["buffer_names"] for name in self._known(one)["deps"])
            own = node["buffer_names"]
            self._op(node["name"], [one for one in reads if one not in own], own, True)

    def _known(self, name: str) -> dict[str, Any]:
        # What a fused node keeps to itself is no buffer.
        return self.buffers.get(name, {"deps": []})

    def _parts(self) -> dict[str, list[str]]:
        """Buffers that an op with several results allocates for the ops that pick them."""
        parts: dict[str, list[str]] = {}
        for name, one in self.buffers.items():
            if one["is_input"] or one["size_alloc"] >= one["size_free"]:
                continue
            owner = next((dep for dep in one["deps"] if self._surplus(dep) > 0), None)
            if owner is not None:
                parts.setdefault(owner, []).append(name)
        return parts

    def _surplus(self, name: str) -> int:
        one = self.buffers.get(name)
        return 0 if one is None else int(one["size_alloc"]) - int(one["size_free"])

    def _op(self, name: str, reads: list[str], defines: list[str], recomputable: bool) -> None:
        op = len(self.document["ops"])
        record: dict[str, Any] = {"name": name}
        self.document["ops"].append(record)
        reads = [*reads, *(_part(one) for one in defines)]
        record["reads"] = sorted({self.tensors[one] for one in reads if one in self.tensors})
        record["defines"] = []
        for one in defines:
            if one in self.buffers:
                record["defines"] += self._results(one, op)
        touched = {self.document["tensors"][one]["storage"] for one in (*record["reads"], *record["defines"])}
        moved = sum(self.document["storages"][one]["bytes"] for one in touched)
        record["duration"] = 0 if name == _INPUTS else max(1, moved)
        if not recomputable:
            record["recomputable"] = False

    def _results(self, name: str, op: int) -> list[int]:
        """The tensors that an op makes with a buffer."""
        buffer = self.buffers[name]
        if (allocated := self.tensors.get(_part(name))) is not None:
            return [self._tensor(name, op, self.document["tensors"][allocated]["storage"])]
        made = [self._tensor(name, op, self._storage(max(0, int(buffer["size_free"])), bool(buffer["is_output"])))]
        for part in self.parts.get(name, ()):
            one = self.buffers[part]
            made.append(self._tensor(_part(part), op, self._storage(int(one["size_free"]), one["is_output"])))
        return made

    def _storage(self, size: int, is_output: bool) -> int:
        role = "live-out" if is_output else "transient"
        self.document["storages"].append({"root": len(self.document["tensors"]), "bytes": size, "role": role})
        return len(self.document["storages"]) - 1

    def _tensor(self, name: str, op: int, storage: int) -> int:
        self.tensors[name] = len(self.document["tensors"])
        self.document["tensors"].append({"name": name, "producer": op, "storage": storage})
        return self.tensors[name]


def _part(name: str) -> str:
    """The tensor that stands for a buffer where another op allocates it."""
    return f"{name} of its op"
