"""Models, plans and graphs as the files that commands read."""

from __future__ import annotations

import json
import os
import pathlib
import tempfile
import weakref
from typing import TYPE_CHECKING, Any, Protocol, Union

from . import _process
from .errors import UsageError

if TYPE_CHECKING:
    import onnx


class Exported(Protocol):
    """What `torch.onnx.export` gives."""

    @property
    def model_proto(self) -> onnx.ModelProto:
        """The model."""


Model = Union["onnx.ModelProto", Exported, bytes, str, "os.PathLike[str]"]
"""A model in memory (`onnx.ModelProto`, its serialized bytes, or what `torch.onnx.export` gives), or the path of a
file."""

# What one message of protobuf can hold, with room for what is not weights.
_LARGEST_MESSAGE = (1 << 31) - (1 << 24)


# As the native side calls it, too: who holds it locked, uses the folder; others are removed by later processes.
LOCK = ".lock"


class Folder(tempfile.TemporaryDirectory[str]):
    """A folder for files that live as long as this object. If the process is killed, a later one removes it."""

    def __init__(self) -> None:
        super().__init__(prefix="remat-opt-")
        try:
            import fcntl
        except ImportError:
            return
        lock = os.open(os.path.join(self.name, LOCK), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC)
        weakref.finalize(self, os.close, lock)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            # Where files cannot be locked, none is taken for abandoned.
            os.unlink(os.path.join(self.name, LOCK))


def path_of(path: str | os.PathLike[str]) -> pathlib.Path:
    """A path that no command takes for an option or a stream."""
    return pathlib.Path(os.path.abspath(path))


def model_file(model: Model, folder: pathlib.Path) -> pathlib.Path:
    """The file of a model; one in memory is written to `folder`."""
    if isinstance(model, (str, os.PathLike)):
        return path_of(model)
    path = folder / "input.onnx"
    if isinstance(model, bytes):
        path.write_bytes(model)
        return path
    import onnx

    proto = getattr(model, "model_proto", model)
    if not isinstance(proto, onnx.ModelProto):
        raise UsageError(f"a model is an onnx.ModelProto, bytes or a path, not {type(model).__name__}")
    if proto.ByteSize() > _LARGEST_MESSAGE:
        onnx.save_model(proto, str(path), save_as_external_data=True, location="input.onnx.data")
        # Saving took the weights out of the caller's model.
        onnx.load_external_data_for_model(proto, str(folder))
    else:
        path.write_bytes(proto.SerializeToString())
    return path


def json_file(value: Any, path: pathlib.Path) -> pathlib.Path:
    """An object as a file."""
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def models_of(folder: pathlib.Path) -> list[str]:
    """The models of a folder: their paths in it, with `/`."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.onnx"))

def only_model(path: pathlib.Path) -> pathlib.Path:
    """The model of a folder that has one; a file is itself.

    Raises:
        UsageError: There is none, there are several, or the folder is a loadable form.
    """
    if not path.is_dir():
        return path
    if (path / _process.MANIFEST).exists():
        raise UsageError(f"`{path}` is a loadable form, of which only `remat_opt.session` takes the right model")
    names = models_of(path)
    if len(names) != 1:
        told = f"has {len(names)} models ({', '.join(names)})" if names else "has no model"
        raise UsageError(f"`{path}` {told}, and options are for one: name a file, or make a session for each")
    return path / names[0]
