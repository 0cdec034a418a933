"""What the main job gives."""

from __future__ import annotations

import os
import pathlib
import shutil
from typing import TYPE_CHECKING, Any

from . import _html, _process, _session
from ._command import Size
from ._files import LOCK, Folder
from ._plan import Plan
from ._report import Report

if TYPE_CHECKING:
    import onnx
    import onnxruntime

    from ._runtime import Session


class Result:
    """A model that takes less memory, with its plan and its report.

    It can be pickled: then it brings along the files that live as long as it does, all but those that were written to
    `output`.
    """

    report: Report
    """What it gains and costs (`remat-report/2`)."""
    plan: Plan
    """Which op runs when."""
    path: pathlib.Path
    """The model as a file; where none takes less than the original model, the original. With `process` the folder of the
    loadable form."""

    def __init__(
        self, report: Report, plan: Plan, path: pathlib.Path, folder: Folder
    ) -> None:
        self.report = report
        self.plan = plan
        self.path = path
        self._folder = folder

    @property
    def changed(self) -> bool:
        """Whether the model was rewritten: it is not where no file takes less than the original one."""
        return bool(self.report.get("is_written", True)) and self.report.get("strategy") != "untouched"

    @property
    def model(self) -> onnx.ModelProto:
        """The model in memory, with its weights; read anew each time."""
        import onnx

        return onnx.load(str(self._file))

    @property
    def _file(self) -> pathlib.Path:
        """The model as a file; of a loadable form the portable one."""
        return self.path / _process.PORTABLE if self.path.is_dir() else self.path

    def session(
        self,
        sess_options: onnxruntime.SessionOptions | None = None,
        providers: list[Any] | None = None,
        memory: Size | None = None,
        batch: str | None = None,
        share: bool | str | os.PathLike[str] = False,
        **keywords: Any,
    ) -> Session:
        """A session of ONNX Runtime with what the model was made for: its optimization level, its order of nodes, and
        its plan of memory or the settings that were recommended.

        Args:
            sess_options: Options of yours; what the model needs is set in them.
            providers: As for `onnxruntime.InferenceSession`; the processor, unless given.
            memory: A limit in bytes for what runs take, as for `remat_opt.session`. Needs a plan of memory.
            batch: The open dimension that is the batch, as for `remat_opt.session`.
            share: One block for several sessions, as for `remat_opt.session`.
            keywords: Further arguments of `onnxruntime.InferenceSession`.

        Raises:
            ModelError: There is a limit or a shared block and no plan of memory, or as for `remat_opt.session`.
            UsageError: The limit is no size.
            OSError: A plan of memory on another system than Linux.
        """
        if self.path.is_dir():
            return _session.session(self.path, sess_options, providers, memory, batch, share, **keywords)
        return _session.of_report(self.path, self.report, sess_options, providers, memory, batch, share, keywords)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the model with all that belongs to it: the files of its weights, its plan of memory, and the library
        that follows that plan."""
        target = pathlib.Path(path)
        if self.path.is_dir():
            shutil.copytree(self.path, target, dirs_exist_ok=True)
            return
        shutil.copyfile(self.path, target)
        arena = self.report.get("arena_plan")
        if arena is not None:
            shutil.copyfile(arena["file"], f"{target}.arena")
            shutil.copyfile(arena["library"], target.with_name("libremat_arena.so"))
        for weights in _external_files(self.path):
            shutil.copyfile(self.path.parent / weights, target.parent / weights)

    def __repr__(self) -> str:
        report = self.report
        said = [line for word, line in _html.lines(report) if word in ("Budget", "Memory", "Time")]
        return f"<Result of {report['model']!r}: {'; '.join(said)}>"

    def _repr_html_(self) -> str:
        return self.report._repr_html_()

    def __getstate__(self) -> dict[str, Any]:
        folder = pathlib.Path(self._folder.name)
        files = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file() and path.name != LOCK}
        return {"report": self.report, "plan": self.plan, "path": str(self.path), "folder": str(folder), "files": files}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._folder = Folder()
        old, new = pathlib.Path(state["folder"]), pathlib.Path(self._folder.name)
        for name, content in state["files"].items():
            (new / name).write_bytes(content)
        self.plan = state["plan"]
        self.path = _moved(state["path"], old, new)
        self.report = state["report"]
        arena = self.report.get("arena_plan")
        if arena is not None:
            self.report["arena_plan"] = {
                **arena,
                **{key: str(_moved(arena[key], old, new)) for key in ("file", "library")},
            }


def _moved(path: str, old: pathlib.Path, new: pathlib.Path) -> pathlib.Path:
    """The path of a file whose folder became another one."""
    here = pathlib.Path(path)
    return new / here.name if here.parent == old else here


def _external_files(path: pathlib.Path) -> list[str]:
    """Names of the files beside a model that hold its weights."""
    import onnx
    from onnx.external_data_helper import ExternalDataInfo, _get_all_tensors, uses_external_data

    model = onnx.load(str(path), load_external_data=False)
    tensors = (tensor for tensor in _get_all_tensors(model) if uses_external_data(tensor))
    return sorted({ExternalDataInfo(tensor).location for tensor in tensors})
