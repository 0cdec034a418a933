"""The loadable form of a model: which of its two models a process takes."""

from __future__ import annotations

import dataclasses
import pathlib
import platform

from .errors import ModelError

# The manifest of a loadable form, and what it begins with.
MANIFEST = "process.remat"
PORTABLE = "portable.onnx"
_HEADER = "remat-process 1"


@dataclasses.dataclass(frozen=True)
class Chosen:
    """The model of a loadable form that this process takes."""

    model: pathlib.Path
    level: str
    """Its graph optimization level."""
    portable: pathlib.Path
    """The model whose ops are those of the original."""
    resident: str | None
    """So many bytes of its weights stay in memory; all of them without a number."""
    why_portable: str | None
    """Why it is the portable one, if it is."""


def choose(folder: pathlib.Path, version: str) -> Chosen:
    """The optimized model where this version of ONNX Runtime and this processor are those that it was made for, else
    the portable one.

    Raises:
        ModelError: The folder is no loadable form, or a file of it is missing or has another size.
    """
    lines = _lines(folder)
    files = [line.split() for key in ("model", "portable", "file") for line in lines.get(key, [])]
    for name, size, *_ in files:
        path = folder / name
        if path.parent != folder or not path.is_file() or path.stat().st_size != int(size):
            raise ModelError(f"`{folder}` is incomplete: `{name}` is not the file of {size} bytes that was written")
    why = _why_portable(lines, version)
    kind, level = ("model", "level") if why is None else ("portable", "portable-level")
    # The order in which the portable model reads its weights is not known.
    resident = _first(lines, "resident") if why is None and "resident" in lines else None
    return Chosen(folder / _first(lines, kind), _first(lines, level), folder / _first(lines, "portable"), resident, why)


def _lines(folder: pathlib.Path) -> dict[str, list[str]]:
    """The lines of the manifest by their first word."""
    try:
        header, *lines = (folder / MANIFEST).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise ModelError(f"`{folder}` is no loadable form: it has no `{MANIFEST}` (`remat-opt --process`)") from error
    if header != _HEADER:
        raise ModelError(f"`{folder}` is of another version, `{header}`: write it again (`remat-opt --process`)")
    found: dict[str, list[str]] = {}
    for line in lines:
        key, _, value = line.partition(" ")
        found.setdefault(key, []).append(value)
    missing = {"runtime", "processor", "model", "level", "portable", "portable-level"} - found.keys()
    if missing:
        raise ModelError(f"`{folder / MANIFEST}` has no line `{min(missing)}`: write it again (`remat-opt --process`)")
    return found


def _first(lines: dict[str, list[str]], key: str) -> str:
    return lines[key][0].split()[0]


def _why_portable(lines: dict[str, list[str]], version: str) -> str | None:
    runtime = _first(lines, "runtime")
    if runtime != version:
        return f"it was made for ONNX Runtime {runtime}, and this is {version}"
    architecture, *features = lines["processor"][0].split()
    if architecture != platform.machine():
        return f"it was made for {architecture}, and this is {platform.machine()}"
    has = _features()
    for feature in features:
        name = feature.removeprefix("!")
        if (name in has) == feature.startswith("!"):
            return f"it was made for a processor with{'out' if name in has else ''} `{name}`"
    return None


def _features() -> set[str]:
    """What this processor can do; nothing where the system does not tell."""
    try:
        text = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return set()
    lines = (line.partition(":") for line in text.splitlines())
    return {feature for key, _, value in lines if key.strip() in {"flags", "Features"} for feature in value.split()}
