"""Measures what runs of a model take in ONNX Runtime: heap peak, time, bits.

    python test/python/heap.py MODEL [MODEL...]     one JSON line each

Options:
    --level off|basic|extended|all, --order default|priority, --arena, --no-reuse, --runs N, --dim NAME=N

One thread. The heap is counted by a preloaded library, which `rustc` compiles.
"""

import argparse
import ctypes
import dataclasses
import hashlib
import json
import statistics
import subprocess
import sys
import time

from meter import preloaded
from runtime import LEVELS, ORDERS, Settings, inputs, plain, session

RUNS = 7
FILE_ORDER = Settings(level="off", order="priority", arena=False, reuse=False)
"""Nodes run as they stand in the file, and buffers die with their tensors."""


def measure(model, settings=FILE_ORDER, dims=None, runs=RUNS):
    """Peak, time and bits under one setting."""
    (result,) = measure_each(model, [settings], dims, runs)
    if "error" in result:
        raise RuntimeError(f"{model}: {result['error']}")
    return result


GROWING_HEAP = {"GLIBC_TUNABLES": "glibc.malloc.mmap_threshold=4294967296"}
"""Environment in which large blocks lie at ascending addresses; as a rule each is mapped below the one before."""


def measure_each(model, settings, dims=None, runs=RUNS, environment=None):
    """Peak, time and bits under each of several settings, or the error that the runtime gave.

    `peak_bytes` is the most that the first run takes above what the session holds before it, and `later_peak_bytes` the same
    over `runs` timed ones: with the arena, what the first run took is still held then. All run in one child process, because
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
    times = [timed(runner, feed) for _ in range(runs)]
    return {
        "peak_bytes": first_peak,
        "later_peak_bytes": heap.remat_heap_peak() - before if times else None,
        "median_ms": statistics.median(times) * 1e3 if times else None,
        "bits": digest,
    }


def fingerprint(outputs):
    return hashlib.sha256(repr([plain(o) for o in outputs]).encode()).hexdigest()[:16]


def timed(runner, feed):
    """Seconds of one run."""
    start = time.perf_counter()
    runner.run(None, feed)
    return time.perf_counter() - start


def assignment(text):
    name, number = text.rsplit("=", 1)
    return name, int(number)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--level", choices=LEVELS, default=FILE_ORDER.level)
    parser.add_argument("--order", choices=ORDERS, default=FILE_ORDER.order)
    parser.add_argument("--arena", action="store_true")
    parser.add_argument("--no-reuse", action="store_true")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--dim", type=assignment, action="append", default=[])
    return parser.parse_args()


def main():
    given = arguments()
    settings = Settings(given.level, given.order, given.arena, not given.no_reuse)
    for path in given.models:
        print(json.dumps({"model": path} | measure(path, settings, dict(given.dim), given.runs)))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(json.loads(sys.argv[2]))
    else:
        main()
