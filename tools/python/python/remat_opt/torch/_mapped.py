"""Tensors whose memory is a file: the system takes it out of memory when it needs the room, and brings it back."""

from __future__ import annotations

import os
import tempfile

import torch
from torch.utils.weak import WeakIdKeyDictionary

_LEAST = 64 << 10
"""Smaller tensors stay where they are: a file of its own has pages of its own."""
_ON_DISK = "/var/tmp"
"""Temporary files that are on a disk everywhere, where there is the folder."""


class Mapped:
    """Puts tensors into files of a folder, which have no name and go with their tensors."""

    def __init__(self, folder: str | None) -> None:
        """
        Args:
            folder: On a disk; `/var/tmp` without one.
        """
        self._folder = folder or (_ON_DISK if os.path.isdir(_ON_DISK) else tempfile.gettempdir())
        self._known: WeakIdKeyDictionary = WeakIdKeyDictionary()

    def has(self, value: torch.Tensor) -> bool:
        """Whether the memory of a tensor is a file of this object."""
        return value in self._known

    def take(self, value: torch.Tensor) -> torch.Tensor:
        """A tensor with the same contents and strides whose memory is a file; the same one where it is one already, is small,
        or has elements that share memory.

        Args:
            value: Of a CPU.

        Raises:
            OSError: The folder has no room.
        """
        if value.nbytes < _LEAST or self.has(value) or value.untyped_storage().nbytes() != value.nbytes:
            return value
        file, path = tempfile.mkstemp(prefix=".remat-state-", dir=self._folder)
        try:
            # A full disk is an error here, and not a signal when the memory is first written.
            os.posix_fallocate(file, 0, value.nbytes)
            storage = torch.UntypedStorage.from_file(path, shared=True, nbytes=value.nbytes)
        finally:
            os.close(file)
            os.unlink(path)
        made = torch.empty(0, dtype=value.dtype).set_(storage, 0, value.shape, value.stride())
        made.copy_(value)
        self._known[made] = True
        return made
