"""A folder that an exporter wrote: each model of it planned, one report."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import shutil
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from . import _html
from ._files import models_of, path_of
from ._optimize import optimize
from ._result import Result, _external_files
from .errors import LimitError, ModelError, RematError, UsageError

# Where configurations of Transformers and Diffusers say how large inputs are: the name of the open dimension that
# exporters give it, then keys of the configuration of the component, or of that in another folder.
_SIZES: dict[str, tuple[tuple[str, str], ...]] = {
    "sequence_length": (("", "max_position_embeddings"), ("", "n_positions"), ("text_encoder", "max_position_embeddings")),
    "decoder_sequence_length": (("", "max_target_positions"), ("", "n_positions")),
    "encoder_sequence_length": (("", "max_source_positions"), ("", "n_positions")),
    "num_channels": (("", "num_channels"), ("", "in_channels")),
    "height": (("", "image_size"), ("", "sample_size")),
    "width": (("", "image_size"), ("", "sample_size")),
    "latent_height": (("unet", "sample_size"), ("transformer", "sample_size")),
    "latent_width": (("unet", "sample_size"), ("transformer", "sample_size")),
    "sample_height": (("", "sample_size"),),
    "sample_width": (("", "sample_size"),),
}
# What is planned at where a configuration permits more, as for texts of 128 Ki tokens.
_LONGEST = 512


@dataclasses.dataclass(frozen=True)
class Component:
    """A model of a folder, and what became of it."""

    name: str
    """Its path in the folder, with `/`."""
    dims: dict[str, int]
    """Values of its open dimensions that it was planned at."""
    result: Result | None
    """The planned model; none where it was copied as it is."""
    error: RematError | None = None
    """Why it was copied."""

    @property
    def changed(self) -> bool:
        """Whether another model was written, which takes less memory."""
        return self.result is not None and _gains(self.result)

    @property
    def memory(self) -> tuple[int, int] | None:
        """Bytes of its runs before and after, as its report states them."""
        if self.result is None:
            return None
        if not self.changed:
            before = self.result.report["memory"]["before_bytes"]
            return before, before
        return _memory(self.result)


def _memory(result: Result) -> tuple[int, int]:
    """Bytes of runs before and after."""
    memory = result.report["memory"]
    return memory["before_bytes"], memory["after_bytes"]


def _gains(result: Result) -> bool:
    """Whether the model that was written takes less memory than the original: of small ones it may not, measured."""
    before, after = _memory(result)
    return result.changed and after < before


class Components(list[Component]):
    """The models of a folder that was planned, in the order of their names. `print` shows them as a table."""

    path: pathlib.Path
    """The folder that was written."""

    def __init__(self, path: pathlib.Path, found: list[Component]) -> None:
        super().__init__(found)
        self.path = path

    def __str__(self) -> str:
        rows = [("component", "memory", "", "time", "outputs"), *map(_row, self)]
        widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        planned_at = sorted({f"{name}={size}" for one in self for name, size in one.dims.items()})
        if planned_at:
            lines.append(f"planned at {', '.join(planned_at)}; other sizes are taken, too")
        return "\n".join([*lines, f"written to {self.path}"])


def _row(one: Component) -> tuple[str, str, str, str, str]:
    if one.result is None:
        return one.name, "as it was:", "", "", str(one.error).splitlines()[0]
    if not one.changed:
        return one.name, _html.size((one.memory or (0, 0))[0]), "+0 %", "", "as it was: nothing gained"
    report, (before, after) = one.result.report, one.memory or (0, 0)
    measured = report["measured_overhead_percent"]
    time = report["estimated_overhead_percent"] if measured is None else measured
    share = 100 * (after / before - 1) if before else 0.0
    outputs = report["outputs"] or "not compared"
    memory = f"{_html.size(before)} -> {_html.size(after)}"
    return one.name, memory, f"{share:+.0f} %", f"{time:+.1f} %", outputs


def optimize_folder(
    folder: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    dims: Mapping[str, int] | None = None,
    started: Callable[[str], None] | None = None,
    **keywords: Any,
) -> Components:
    """Plans each model of a folder, as exporters of Hugging Face write them: encoder and decoder, text encoder, U-Net
    and VAE. The same folder is written, with models that take less memory; what is no model is copied.

    Args:
        folder: A folder with `.onnx` files, below it as well.
        output: The folder to write; it is there afterwards or not at all.
        dims: Values of open dimensions to plan at. What is not given is 1 for `batch_size` and for the tokens that a
            cache keeps (`past_sequence_length`), the sum for `past_sequence_length + sequence_length`, else what the
            configurations in the folder say (`max_position_embeddings`, `image_size`, `sample_size`, ...), at most 512
            for lengths of texts, the tokens of the cache among them. They stay free, unless `fix_dims` names them.
        started: Called with the name of each model before it is planned.
        keywords: Further arguments of `optimize`, the same for all.

    Returns:
        The components. A model that cannot be planned is copied, and its `error` says why; so is one where nothing
        takes less memory.

    Raises:
        UsageError: There is no model in the folder, the output is there already or lies inside of it, a model leaves a
            dimension open whose size is neither given nor known, or as for `optimize`.
        InfeasibleError: As for `optimize`; likewise every other error that is about a plan.
    """
    source, target = path_of(folder), path_of(output)
    names = models_of(source)
    if not names:
        raise UsageError(f"`{source}` has no model: no file ends with `.onnx`")
    if target.is_relative_to(source.resolve()) or target.is_relative_to(source):
        raise UsageError(f"`{target}` lies inside of `{source}`: write to another folder")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UsageError(f"`{target}` is there already: write to another folder")
    found_sizes = {name: sizes_at(source, name, dims or {}) for name in names}
    try:
        weights = {(source / name).parent / file for name in names for file in _external_files(source / name)}
        moved = {source / name for name in names} | weights
        ignore = lambda at, found: [one for one in found if pathlib.Path(at, one) in moved]  # noqa: E731
        shutil.copytree(source, target, dirs_exist_ok=True, ignore=ignore)
        found = []
        for name in names:
            if started is not None:
                started(name)
            found.append(_planned(source, target, name, found_sizes[name], keywords))
        return Components(target, found)
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)
        raise


def _planned(source: pathlib.Path, target: pathlib.Path, name: str, dims: dict[str, int], keywords: dict[str, Any]) -> Component:
    error = None
    try:
        result = optimize(source / name, output=target / name, dims=dims, **keywords)
    except (ModelError, LimitError) as failed:
        result, error = None, failed
    if result is None or not _gains(result):
        _remove(target / name)
        for file in (source / name).name, *_external_files(source / name):
            place = (target / name).parent / file
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile((source / name).parent / file, place)
    return Component(name, dims, result, error)


def _remove(path: pathlib.Path) -> None:
    """Removes what was written of a model, its weights and its plan among it, and the library that no plan needs."""
    if path.exists():
        for file in (*_external_files(path), path.name, f"{path.name}.arena"):
            (path.parent / file).unlink(missing_ok=True)
    if not any(path.parent.glob("*.arena")):
        (path.parent / "libremat_arena.so").unlink(missing_ok=True)


def sizes_at(source: pathlib.Path, name: str, given: Mapping[str, int]) -> dict[str, int]:
    """Sizes of the dimensions that a model leaves open."""
    import onnx

    graph = onnx.load(str(source / name), load_external_data=False).graph
    fixed = {one.name for one in graph.initializer}
    dims = [dim for one in graph.input if one.name not in fixed for dim in one.type.tensor_type.shape.dim]
    names = dict.fromkeys(dim.dim_param for dim in dims if dim.dim_param)

    def size_of(dim: str) -> int:
        if dim in given:
            return given[dim]
        if " + " in dim:
            return sum(map(size_of, dim.split(" + ")))
        if dim == "batch_size" or dim.startswith("past_"):
            return 1
        size = _configured(source, name, dim)
        if size is None:
            raise UsageError(f"`{name}` leaves `{dim}` open, and no configuration says its size: give `--dim {dim}=N`")
        # The model has places for both, the tokens of its cache and those that are new.
        return max(1, size - size_of(f"past_{dim}")) if f"past_{dim}" in names else size

    return {dim: size_of(dim) for dim in names}


def _configured(source: pathlib.Path, name: str, dim: str) -> int | None:
    """What the configurations of a folder say of a dimension."""
    for folder, key in _SIZES.get(dim, ()):
        for configuration in _configurations(source, name, folder):
            value = configuration.get(key)
            if isinstance(value, list) and len(value) == 2:
                value = value[dim.endswith("width")]
            if isinstance(value, int) and value > 0:
                return min(value, _LONGEST) if dim == "sequence_length" else value
    return None


def _configurations(source: pathlib.Path, name: str, folder: str) -> Iterator[dict[str, Any]]:
    """The configuration of a component, or of the component in another folder: the nearest one."""
    at = source / folder if folder else (source / name).parent
    while at.is_relative_to(source):
        if (at / "config.json").is_file():
            try:
                content = json.loads((at / "config.json").read_text(encoding="utf-8"))
            except ValueError as error:
                raise ModelError(f"`{at / 'config.json'}` is not JSON: {error}") from error
            if isinstance(content, dict):
                yield content
            return
        at = at.parent
