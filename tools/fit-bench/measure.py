"""The one meter of all systems: resident memory, as Linux counts it for the whole process, whatever allocated it.

    python tools/fit-bench/measure.py ORDER

runs one job, an object of JSON, in this process, and prints an object of JSON as the last line. A job loads one system only, but
for times, which are measured beside the reference.
"""

import contextlib
import ctypes
import gc
import hashlib
import json
import pathlib
import statistics
import sys
import time

import adapter
import cases


def status(*keys):
    """The sum of lines of `/proc/self/status`, in bytes."""
    lines = dict(line.split(":", 1) for line in pathlib.Path("/proc/self/status").read_text().splitlines())
    return sum(int(lines[key].split()[0]) * 1024 for key in keys)


def peak_of(work):
    """The most private memory while something runs, in bytes, and what it returns: the largest resident set, less the
    pages of files that are there afterwards. A system's code counts for none, however late it is read."""
    pathlib.Path("/proc/self/clear_refs").write_text("5")
    found = work()
    return status("VmHWM") - status("RssFile"), found


def settle():
    """Gives back what is free: no system has room from before."""
    gc.collect()
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)


def digest(rounds):
    """The bits of the outputs of some runs."""
    found = hashlib.sha256()
    for array in (array for outputs in rounds for array in outputs):
        found.update(f"{array.dtype} {array.shape}".encode())
        found.update(memoryview(array.reshape(-1)).cast("B") if array.size else b"")
    return found.hexdigest()


class Job:
    """A system with a setting, on a case. `run()` is one round: one run for each size of the case."""

    def __init__(self, order, system, setting):
        self.case = next(case for case in cases.CASES if [case.task, case.kind, case.name] == order["case"])
        self.adapter = adapter.adapters(order["folders"])[system]
        self.options = self.adapter.asked[self.case.task, self.case.kind][setting]
        self.adapter.time_limit = order["time_limit"]
        self.model, self.folder = pathlib.Path(order["model"]), pathlib.Path(order["folder"])

    def load(self, prepared):
        import numpy as np

        if self.case.kind == "torch":
            self._load_step()
            return
        session = self.adapter.session(prepared, self.options)
        feeds = []
        for at in range(len(self.case.dims) or 1):
            with np.load(self.model.with_name(f"feed{at}.npz")) as arrays:
                feeds.append(dict(arrays))
        self.run = lambda: [[np.ascontiguousarray(one) for one in session(feed)] for feed in feeds]

    def _load_step(self):
        import torch

        torch.set_num_threads(1)
        model, inputs = cases.step(self.case)
        weights = list(model.parameters())
        forward = self.adapter.step(model, self.options)

        def run():
            loss = forward(*inputs)
            loss.backward()
            gradients = [weight.grad.numpy() for weight in weights]
            model.zero_grad(set_to_none=True)
            return [[loss.detach().numpy(), *gradients]]

        # Compilers work in the first run; nothing of PyTorch keeps results from one step to the next.
        run()
        self.run = run


def prepare(order):
    """What the system makes of the model, and the seconds that it takes."""
    job = Job(order, order["system"], order["setting"])
    start = time.perf_counter()
    if job.case.kind == "onnx":
        prepared = job.adapter.prepare(job.case, job.options, job.model, job.folder)
        return {"prepared": prepared, "seconds": time.perf_counter() - start}
    if job.case.kind == "torch":
        return {"prepared": {}, "seconds": None}
    buffers = cases.buffers(job.case)
    start = time.perf_counter()
    offsets = [int(offset) for offset in job.adapter.place(buffers, job.options)]
    seconds = time.perf_counter() - start
    return {"buffers": buffers, "offsets": offsets, "seconds": seconds}


def memory(order):
    """What the process grows by in its first round and in later ones, or takes as a whole; the bits of all rounds."""
    import numpy as np

    job = Job(order, order["system"], order["setting"])
    is_whole = job.case.task == "whole process"
    job.load(order["prepared"])
    if not is_whole:
        settle()
    before = 0 if is_whole else status("RssAnon", "RssShmem")
    bits, peaks = set(), []
    for _ in range(order["rounds"]):
        if is_whole:
            outputs = job.run()
            peaks.append(status("VmHWM"))
        else:
            peak, outputs = peak_of(job.run)
            peaks.append(peak)
        bits.add(digest(outputs))
        del outputs
    outputs = {f"{at}.{number}": one for at, found in enumerate(job.run()) for number, one in enumerate(found)}
    np.savez(order["outputs"], **outputs)
    predicted = job.adapter.predicted_bytes(order["prepared"])
    return {"measured_bytes": max(peaks) - before, "predicted_bytes": predicted, "bits": sorted(bits)}


def times(order):
    """The time of a round as a multiple of that of the reference, both in this process and in turns: the median."""
    jobs = [Job(order, *order["reference"]), Job(order, order["system"], order["setting"])]
    ratios = []
    for job, prepared in zip(jobs, [order["reference_prepared"], order["prepared"]]):
        job.load(prepared)
    for at in range(order["rounds"] + 2):
        taken = []
        for job in jobs if at % 2 else reversed(jobs):
            start = time.perf_counter()
            job.run()
            taken.append(time.perf_counter() - start)
        if at >= 2:
            ratios.append(taken[1] / taken[0] if at % 2 else taken[0] / taken[1])
    return {"time_ratio": statistics.median(ratios)}


def main():
    order = json.loads(sys.argv[1])
    try:
        found = {"prepare": prepare, "memory": memory, "times": times}[order["do"]](order)
    except Exception as error:  # Whatever a system throws is a finding.
        found = {"failed": " ".join(f"{type(error).__name__}: {error}".split())[:300]}
    print("\n" + json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
