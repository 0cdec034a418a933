"""Budgets of what is free: the memory that a step may take on a device as it is now."""

from __future__ import annotations

from ._budget import Budget
from ._peak import free_bytes

_RESERVED = 10
"""What part of the free memory is left: allocators round up and keep pieces, libraries load kernels."""
_STATES = 2
"""How many tensors of the size of each returned gradient are left free: Adam makes two with its first update, and what
compares gradients holds two at once."""


def resolved(budget: Budget, device: str, external: int, gradients: int) -> Budget:
    """A budget in bytes in place of `"fit"`; others as they are.

    What a graph is given is there already, so the free memory is for what the step takes on top.

    Args:
        budget: As `memory=` says it.
        device: `"cpu"`, or a CUDA device such as `"cuda:1"`, where the step runs.
        external: Bytes of parameters, buffers and inputs, as far as the graph reads them.
        gradients: Bytes of the gradients that the step returns: their update is not part of it.
    """
    if not budget.is_free:
        return budget
    free = free_bytes(device)
    return Budget(external + max(1, free - free // _RESERVED - _STATES * gradients), None)
