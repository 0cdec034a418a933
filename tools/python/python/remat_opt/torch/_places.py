"""Which values of a planned graph lie where, while transfers move their memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container

from torch import fx

from ._effects import is_getitem
from ._graph import TrainingGraph


class Places:
    """The values of a graph by their storages.

    Attributes:
        away: Nodes whose values moved out, or came back and were not asked for since, with their storages.
        latest: What was made last in a storage: it has its memory.
        memory: The bytes of a storage that came back; not there while it is away.
    """

    def __init__(self, source: TrainingGraph) -> None:
        """Reads a graph.

        Args:
            source: With its problem.
        """
        self.away: dict[fx.Node, int] = {}
        self.latest: dict[int, fx.Node] = {}
        self.memory: dict[int, fx.Node] = {}
        self._storage: dict[fx.Node, int] = {}
        self._values: dict[int, list[fx.Node]] = defaultdict(list)
        for node in source.graph.nodes:
            key = (node.args[0], node.args[1]) if is_getitem(node) else (node, None)
            tensor = source.tensors.get(key)
            if tensor is not None:
                storage = source.document["tensors"][tensor]["storage"]
                self._storage[node] = storage
                self._values[storage].append(node)

    def arrives(self, node: fx.Node, copy: fx.Node) -> None:
        """A node of the graph has a value that was just made.

        Args:
            node: Of the traced graph.
            copy: Of the planned graph.
        """
        self.away.pop(node, None)
        if node in self._storage:
            self.latest[self._storage[node]] = copy

    def leaves(self, storage: int, present: Container[fx.Node]) -> None:
        """A storage moves out, and its values with it.

        Args:
            storage: Its position in the problem.
            present: Nodes that have values.
        """
        self.memory.pop(storage, None)
        self.away |= dict.fromkeys((one for one in self._values[storage] if one in present), storage)
