"""Loadable forms within the limits that they promise.

    python test/python/process_lab.py ORIGINAL DIR [--dim batch=2 ..] [--runs 20]

runs the form in DIR in a control group of memory with the promise as its limit, 2 % and 1 MB more for what the kernel
counts besides, with no page of a file in memory before; compares the bits of all runs with those of ORIGINAL; runs it again
with 0.9 of what must be there, where it has to fail; and prints what came of it beside the time of a run as a multiple of
that of the original.
"""

import argparse
import hashlib
import json
import pathlib
import statistics
import subprocess
import sys
import time

import cgroup
import numpy as np
import onnxruntime as ort
from runtime import inputs

HERE = pathlib.Path(__file__).resolve().parent
MB = 1_000_000
OWN = {"python": 80 * MB, "c": 30 * MB}
"""What a program may take itself, beside weights and what runs need."""


def promise(folder, program):
    """Bytes that must be there, and that may be dropped, as the manifest says."""
    lines = (line.split() for line in (folder / "process.remat").read_text().splitlines())
    return next((int(line[2]), int(line[3])) for line in lines if line[:2] == ["promise", program])


def digest(outputs):
    """The bits of outputs, without a copy of them."""
    found = hashlib.blake2b()
    for output in outputs:
        for one in output if isinstance(output, list) else [output]:
            found.update(f"{one.dtype} {one.shape}".encode())
            found.update(np.ascontiguousarray(one).data)
    return found.hexdigest()


def child(folder, dims, runs):
    """What a process of the form does: it loads the form, runs it, and says the bits of its outputs."""
    import remat_opt

    session = remat_opt.session(folder, options())
    given = inputs(session, dims)
    print(json.dumps({"bits": sorted({digest(session.run(None, given)) for _ in range(runs)})}))


def most_read(folder, runs):
    """What a process of the form may read from the disk: programs and libraries, and in each run more than all weights."""
    return 4 * 10**9 + 2 * runs * sum(path.stat().st_size for path in folder.iterdir())


def held(folder, limit, dims, runs, python=sys.executable):
    """A process of the form in Python, with so many bytes."""
    arguments = [HERE / "process_lab.py", "--child", folder, "--runs", runs]
    arguments += [f"--dim={name}={size}" for name, size in dims.items()]
    return cgroup.run(limit, [python, *arguments], most_read(folder, runs))


def built(source, folder):
    """A program in C that loads forms (`process.c`), with the library of the runtime that this Python has."""
    library = next(pathlib.Path(ort.__file__).parent.glob("capi/libonnxruntime.so.*"))
    root = HERE.parent.parent / "passes" / "onnxruntime" / "arena"
    program = pathlib.Path(folder) / "process"
    # The loader looks for its name without the minor version, which packages for Python do not have.
    named = pathlib.Path(folder) / "libonnxruntime.so.1"
    named.symlink_to(library)
    include = ["-I", root / "tests" / "onnxruntime", "-I", root / "c"]
    link = [named, f"-Wl,-rpath,{named.parent}"]
    subprocess.run(["cc", "-std=c99", "-Wall", "-Wextra", "-Werror", *include, source, *link, "-o", program], check=True)
    return program


def options():
    """One thread, and no warnings."""
    chosen = ort.SessionOptions()
    chosen.intra_op_num_threads = 1
    chosen.log_severity_level = 3
    return chosen


def stock(original):
    """The original in a default session of one thread."""
    return ort.InferenceSession(str(original), options(), providers=["CPUExecutionProvider"])


def bits_of(original, dims):
    """The bits of the original."""
    session = stock(original)
    return digest(session.run(None, inputs(session, dims)))


def in_turns(original, folder, dims, rounds=10):
    """The time of a run of the form as a multiple of that of the original, both in this process: the median of ratios."""
    import remat_opt

    sessions = [stock(original), remat_opt.session(folder, options())]
    given = inputs(sessions[0], dims)
    ratios = []
    for at in range(rounds + 2):
        times = []
        for session in sessions:
            start = time.perf_counter()
            session.run(None, given)
            times.append(time.perf_counter() - start)
        if at >= 2:
            ratios.append(times[1] / times[0])
    return statistics.median(ratios)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--child", type=pathlib.Path)
    parser.add_argument("paths", nargs="*", type=pathlib.Path)
    parser.add_argument("--dim", action="append", default=[])
    parser.add_argument("--runs", type=int, default=20)
    asked = parser.parse_args()
    dims = {name: int(size) for name, _, size in (one.partition("=") for one in asked.dim)}
    if asked.child:
        child(asked.child, dims, asked.runs)
        return
    if (why := cgroup.why_not()) is not None:
        sys.exit(why)
    original, folder = asked.paths
    must, may = promise(folder, "python")
    kept = held(folder, int((must + may) * 1.02) + MB, dims, asked.runs)
    tight = held(folder, int(must * 0.9), dims, asked.runs)
    expected = bits_of(original, dims)
    said = json.loads(kept.out) if kept.status == 0 else {}
    print(
        json.dumps(
            {
                "model": original.stem,
                "must_MB": round(must / MB, 1),
                "promise_MB": round((must + may) / MB, 1),
                "most_charged_MB": None if kept.most_bytes is None else round(kept.most_bytes / MB, 1),
                "kept": kept.status == 0,
                "bits": said.get("bits") == [expected],
                "fails_at_0.9": tight.status != 0,
                "ratio": round(in_turns(original, folder, dims), 3),
            }
        )
    )
    if kept.status != 0:
        print(kept.status, kept.err[-2000:], file=sys.stderr)


if __name__ == "__main__":
    main()
