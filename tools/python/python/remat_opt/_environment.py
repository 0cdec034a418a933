"""Tells the native module about this interpreter, when the package is imported."""

import pathlib
import sys

from . import _native

# A process that runs a model needs the native module alone, so it is loaded without the package, the site and the
# user's environment. Signals end it as they end any program.
_CHILD = """
import signal, sys
from importlib.util import module_from_spec, spec_from_file_location
signal.signal(signal.SIGINT, signal.SIG_DFL)
spec = spec_from_file_location("_native", sys.argv[1])
native = module_from_spec(spec)
spec.loader.exec_module(native)
sys.exit(native.run(["remat-opt", *sys.argv[2:]]))
"""


def _environments() -> list[str]:
    """Where ONNX Runtime is looked for: beside this package, then in the environment of the interpreter. The working
    directory is no such place."""
    packages = pathlib.Path(__file__).resolve().parent.parent
    beside = [packages.parents[2]] if packages.name in ("site-packages", "dist-packages") else []
    return list(dict.fromkeys(map(str, (*beside, pathlib.Path(sys.prefix)))))


_native.embed(sys.executable or "python3", ["-I", "-S", "-c", _CHILD, _native.__file__], _environments())
