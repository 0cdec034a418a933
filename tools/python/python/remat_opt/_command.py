"""Commands of the command line as calls: arguments in, the object that `--format json` prints out."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Mapping
from typing import Any

from . import _environment as _environment
from . import _native
from ._files import path_of
from ._progress import Progress, ProgressCallback
from .errors import error_of

Size = int | str
"""Bytes, or a text with a unit: `512MiB`, `16GB`."""
Share = float | str
"""A part of 1 (`0.05`), or a text (`5%`)."""
Seconds = float | str
"""Seconds, or a text with a unit: `500ms`, `5min`."""

Line = list[str | os.PathLike[str]]
"""A command line, without the program."""

_log = logging.getLogger("remat_opt")


def call(arguments: Iterable[str | os.PathLike[str]], progress: ProgressCallback | None = None) -> dict[str, Any]:
    """Runs a command. Its warnings go to the logger `remat_opt`, and stay in the report.

    Raises the `RematError` that it ends with.
    """
    line = [os.fspath(argument) for argument in arguments]
    tell = None if progress is None else lambda **now: progress(Progress(**now))
    document: dict[str, Any] = json.loads(_native.call([*line, "--format", "json"], tell))
    for warning in document.get("warnings", ()):
        _log.warning("%s", warning)
    if (error := error_of(document)) is not None:
        raise error
    return document


def option(name: str, value: object) -> list[str]:
    """An option of the command line; nothing for `None` and `False`, and only its name for `True`."""
    if value is None or value is False:
        return []
    # In one word, so that no value is taken for an option.
    return [f"--{name}"] if value is True else [f"--{name}={value}"]


def options(**values: object) -> list[str]:
    """Several of them, with dashes for underscores."""
    return [word for name, value in values.items() for word in option(name.replace("_", "-"), value)]


def assigned(name: str, values: Mapping[str, int] | None) -> list[str]:
    """An option that is given once for each name: `--dim=batch=8`."""
    return [f"--{name}={key}={value}" for key, value in (values or {}).items()]


def dimensions(dims: Mapping[str, int] | None, fixed: Mapping[str, int] | Iterable[str] | None) -> list[str]:
    """Values of dimensions, and which are fixed, with a value where there is one: `--fix-dim=n=512`, `--fix-dim=n`."""
    given = assigned("dim", dims)

    def name(text: str) -> str:
        # A comma would end it.
        return text.replace(",", "\\,")

    if isinstance(fixed, Mapping):
        return given + [f"--fix-dim={name(key)}={value}" for key, value in fixed.items()]
    return given + [f"--fix-dim={name(key)}" for key in ([fixed] if isinstance(fixed, str) else fixed or [])]


Sizes = str | int | range | Iterable[int]
"""Sizes of a dimension: one, some, or as the command line takes them."""


def ranges(shapes: str | Mapping[str, Sizes] | None) -> str | None:
    """Shapes as the command line takes them."""
    if shapes is None or isinstance(shapes, str):
        return shapes

    def of(sizes: Sizes) -> str:
        if isinstance(sizes, range) and len(sizes) > 1 and sizes.step > 0:
            return f"{sizes[0]}..{sizes[-1]}:{sizes.step}"
        return str(sizes) if isinstance(sizes, (str, int)) else ",".join(map(str, sizes))

    return ",".join(f"{name}={of(sizes)}" for name, sizes in shapes.items())


def in_shapes(shapes: str | Mapping[str, Sizes] | None, weights: str | os.PathLike[str] | None) -> list[str]:
    """Shapes of runs, and a file of those that were seen."""
    return options(shapes=ranges(shapes), weights=weights and path_of(weights))


def several(values: str | Iterable[object] | None) -> str | None:
    """A list as the command line takes it, with commas."""
    if values is None or isinstance(values, str):
        return values
    return ",".join(str(value) for value in values) or None


def budget(value: str | int | float) -> str:
    """A budget: an integer is a number of bytes, another number a part of 1."""
    return share(value) if isinstance(value, float) else str(value)


def share(value: Share) -> str:
    """A part of 1, exact to a millionth."""
    return value if isinstance(value, str) else f"{100 * value:.4f}".rstrip("0").rstrip(".") + "%"


def seconds(value: Seconds) -> str:
    """A time, exact to a microsecond."""
    return value if isinstance(value, str) else f"{value:.6f}s"
