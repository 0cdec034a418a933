"""The heap meter, compiled where tests can preload it."""

import functools
import os
import pathlib
import subprocess
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2] / "passes" / "onnxruntime" / "run" / "meter" / "heap_meter.rs"
"""The program's own meter; it exports `remat_heap_live`, `remat_heap_peak` and `remat_heap_reset`."""
FLAGS = ["--crate-name=remat_heap_meter", "--crate-type=cdylib", "--edition=2024", "-Copt-level=2", "-Cpanic=abort"]


@functools.cache
def meter():
    """Path of the meter as a shared library, compiled when its source is newer."""
    library = pathlib.Path(tempfile.gettempdir()) / f"remat_heap_meter_{os.getuid()}.so"
    if not library.exists() or library.stat().st_mtime < SOURCE.stat().st_mtime:
        fresh = library.with_suffix(f".{os.getpid()}")
        subprocess.run(
            [os.environ.get("RUSTC", "rustc"), *FLAGS, "-o", str(fresh), str(SOURCE)], check=True, cwd=SOURCE.parent
        )
        fresh.replace(library)
    return library


def preloaded(**variables):
    """The environment of a process that is to be metered."""
    return dict(os.environ, LD_PRELOAD=str(meter()), **variables)
