"""Measures what runs of a model take in ONNX Runtime: heap peak, time, bits.

    python test/python/heap.py MODEL [MODEL...]     one JSON line each

The settings are those under which the promise of remat-opt holds: nodes run as they stand in the file, buffers die with their
tensors, no arena. One thread. The heap is counted by a preloaded library, so a C compiler is needed.
"""

import ctypes
import hashlib
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
RUNS = 7


def compiler():
    return shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


def meter():
    """The compiled meter."""
    library = pathlib.Path(tempfile.gettempdir()) / f"remat_heap_peak_{os.getuid()}.so"
    source = HERE / "heap_peak.c"
    if not library.exists() or library.stat().st_mtime < source.stat().st_mtime:
        fresh = library.with_suffix(f".{os.getpid()}")
        subprocess.run([compiler(), "-O2", "-shared", "-fPIC", str(source), "-o", str(fresh)], check=True)
        fresh.replace(library)
    return library


def measure(model):
    """Runs in a child process, because the meter has to be there from the start."""
    env = dict(os.environ, LD_PRELOAD=str(meter()), REMAT_HEAP_CHILD="1")
    run = subprocess.run([sys.executable, __file__, str(model)], env=env, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise RuntimeError(f"{model}: {run.stderr.strip().splitlines()[-1:]}")
    return json.loads(run.stdout)


def child(model):
    import onnxruntime as ort
    from runtime import inputs

    ort.set_default_logger_severity(3)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.execution_order = ort.ExecutionOrder.PRIORITY_BASED
    options.enable_mem_reuse = False
    options.enable_cpu_mem_arena = False
    options.enable_mem_pattern = False
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    feed = inputs(session, {})
    heap = ctypes.CDLL(None)
    heap.heap_live.restype = heap.heap_peak.restype = ctypes.c_long
    heap.heap_reset()
    before = heap.heap_live()
    outputs = session.run(None, feed)
    peak = heap.heap_peak() - before
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        session.run(None, feed)
        times.append(time.perf_counter() - start)
    digest = hashlib.sha256(b"".join(o.tobytes() for o in outputs)).hexdigest()[:16]
    print(json.dumps({"model": model, "peak_bytes": peak, "median_ms": statistics.median(times) * 1e3, "bits": digest}))


if __name__ == "__main__":
    if os.environ.get("REMAT_HEAP_CHILD"):
        child(sys.argv[1])
    else:
        for path in sys.argv[1:]:
            print(json.dumps(measure(path)))
