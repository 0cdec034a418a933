"""What a system of the scoreboard is: a file `adapters/NAME.py` with one class that derives from `Adapter`.

The file imports its packages inside of methods: it is read where they are not installed, too.
"""

import importlib.util
import pathlib
from importlib import metadata

FOLDER = pathlib.Path(__file__).resolve().parent / "adapters"


class Adapter:
    """A system that can be asked for models in less memory. Every method but `why_not` runs in a process of its own, with
    one thread; what it raises is shown in the row.
    """

    needs = ()
    """Distributions whose versions are stated, as `pip` names them. Where one is missing, the system is skipped."""

    asked = {}
    """What it can be asked: `{(task, kind): {setting: options}}`, with a task and a kind of `cases.py`. Each setting is a
    row; its options are any JSON, and are what the methods get."""

    time_limit = 10.0
    """Seconds that a search may take for one model; set before any method is called."""

    def why_not(self):
        """Why the system cannot run here; `None` where it can."""
        for name in self.needs:
            try:
                metadata.version(name)
            except metadata.PackageNotFoundError:
                return f"{name} is not installed"
        return None

    def prepare(self, case, options, model, folder):
        """Kind `onnx`: whatever takes long and need not be in the process that runs the model.

        Args:
            case: The `Case`; `case.dims` has the sizes of its open dimension in runs, smallest first.
            options: Those of the setting.
            model: Path of the original.
            folder: An empty folder, for files that `session` reads.

        Returns:
            JSON for `session`. `predicted_bytes` of it is the growth of the process that is promised.
        """
        return {"model": str(model)}

    def session(self, prepared, options):
        """Kind `onnx`: loads what was prepared, by default in ONNX Runtime with nothing set. Returns a function from inputs
        by name to the list of outputs, both NumPy arrays, in the order of the original's outputs. It is called several
        times."""
        return in_onnxruntime(prepared["model"])

    def step(self, model, options):
        """Kind `torch`: `model` is a module that returns the loss. Returns what is called with its inputs instead, and
        has the same gradients."""
        raise NotImplementedError

    def place(self, buffers, options):
        """Kind `buffers`: offsets in one block. `buffers` are `(lower, upper, size)`: needed from `lower` until before
        `upper`, bytes. Returns the offsets in the same order, multiples of `cases.ALIGNMENT`."""
        raise NotImplementedError

    def predicted_bytes(self, prepared):
        """The promised growth of the process in bytes, asked after the first run; `None` where nothing is promised."""
        return prepared.get("predicted_bytes")


def in_onnxruntime(model, chosen=None, each=None):
    """A function that runs a model in a session of ONNX Runtime with one thread, by options of yours or none."""
    import onnxruntime

    chosen = onnxruntime.SessionOptions() if chosen is None else chosen
    chosen.intra_op_num_threads, chosen.log_severity_level = 1, 3
    session = onnxruntime.InferenceSession(str(model), chosen, providers=["CPUExecutionProvider"])
    return lambda feed: session.run(None, feed, each)


def adapters(folders=()):
    """The adapters of this folder and of further ones, by the name of their file.

    Raises:
        ValueError: A file has no adapter or several, or asks for a task or kind that does not exist.
    """
    from cases import KINDS, TASKS

    found = {}
    for path in sorted(path for folder in (FOLDER, *folders) for path in pathlib.Path(folder).glob("*.py")):
        spec = importlib.util.spec_from_file_location(f"fit_bench_adapter_{path.stem}", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        classes = [one for one in vars(module).values() if isinstance(one, type) and one.__module__ == module.__name__]
        classes = [one for one in classes if issubclass(one, Adapter)]
        if len(classes) != 1:
            raise ValueError(f"`{path}` has {len(classes)} classes that derive from `Adapter`, not 1")
        for task, kind in classes[0].asked:
            if task not in TASKS or kind not in KINDS:
                raise ValueError(f"`{path}` can be asked for `{task}` of `{kind}`, which does not exist")
        found[path.stem] = classes[0]()
    return found
