"""Measures what runs of a model take in ONNX Runtime, heap peak and bits, with one thread. The heap is counted by a preloaded
library, which `rustc` compiles."""

import ctypes
import dataclasses
import hashlib
import json
import subprocess
import sys

from meter import preloaded
from runtime import Settings, inputs, plain, session

FILE_ORDER = Settings(level="off", order="priority", arena=False, reuse=False)
"""Nodes run as they stand in the file, and buffers die with their tensors."""


def measure(model, settings=FILE_ORDER):
    """Peak and bits under one setting."""
    (result,) = measure_each(model, [settings])
    if "error" in result:
        raise RuntimeError(f"{model}: {result['error']}")
    return result


GROWING_HEAP = {"GLIBC_TUNABLES": "glibc.malloc.mmap_threshold=4294967296"}
"""Environment in which large blocks lie at ascending addresses; as a rule each is mapped below the one before."""


def measure_each(model, settings, dims=None, runs=0, environment=None):
    """Peak and bits under each of several settings, or the error that the runtime gave.

    `peak_bytes` is the most that the first run takes above what the session holds before it, and `later_peak_bytes` the same
    over `runs` further ones: with the arena, what the first run took is still held then. All run in one child process, because
    the meter has to be there from the start.
    """
    env = preloaded() | (environment or {})
    order = {
        "model": str(model),
        "settings": [dataclasses.asdict(s) for s in settings],
        "dims": dims or {},
        "runs": runs,
    }
    run = subprocess.run(
        [sys.executable, __file__, "--child", json.dumps(order)], env=env, capture_output=True, text=True, check=False
    )
    if run.returncode != 0:
        raise RuntimeError(f"{model}: {run.stderr.strip().splitlines()[-1:]}")
    return [json.loads(line) for line in run.stdout.splitlines()]


def child(order):
    """Prints one line for each of the settings."""
    heap = ctypes.CDLL(None)
    heap.remat_heap_live.restype = heap.remat_heap_peak.restype = ctypes.c_int64
    for fields in order["settings"]:
        try:
            result = watch(heap, order["model"], Settings(**fields), order["dims"], order["runs"])
        except Exception as error:  # Whatever the runtime throws is a finding.
            result = {"error": str(error)}
        print(json.dumps(fields | result), flush=True)


def watch(heap, model, settings, dims, runs):
    """Runs the model while the heap is counted."""
    runner = session(model, settings)
    feed = inputs(runner, dims)
    before = heap.remat_heap_live()
    heap.remat_heap_reset()
    outputs = runner.run(None, feed)
    first_peak = heap.remat_heap_peak() - before
    digest = fingerprint(outputs)
    del outputs
    heap.remat_heap_reset()
    for _ in range(runs):
        runner.run(None, feed)
    return {
        "peak_bytes": first_peak,
        "later_peak_bytes": heap.remat_heap_peak() - before if runs else None,
        "bits": digest,
    }


def fingerprint(outputs):
    return hashlib.sha256(repr([plain(o) for o in outputs]).encode()).hexdigest()[:16]


if __name__ == "__main__":
    child(json.loads(sys.argv[2]))
