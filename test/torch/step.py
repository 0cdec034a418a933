"""Measures training steps: peak of the heap, time, gradients.

A step runs in a process whose heap is counted. The peak is the worst of later steps, above parameters and inputs;
gradients are dropped before each.

    python test/torch/step.py MODEL CONFIG [MEMORY]     CONFIG: see `RUNS`
"""

import functools
import gc
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import models

STEPS = 6


def measure(model, config="eager", memory=None, **keywords):
    """Measures steps of a model in a process of its own, with one thread.

    Args:
        model: A name of `models`.
        config: A name of `RUNS`.
        memory: Its budget.
        keywords: Of the backend.

    Returns:
        `peak` in bytes, `seconds` of processor time and `wall` seconds of the fastest step, `bits` of loss and gradients,
        their largest relative `error`, most bytes in a `second_memory`, and the `reports` of the backend.
    """
    return metered(__file__, {"model": model, "config": config, "memory": memory, "keywords": keywords})


def metered(program, order, **variables):
    """What a program answers to an order: it is run with `--child` in a process whose heap is counted, with the variables
    in its environment, and prints JSON."""
    from remat_opt.torch._metered import metered as environment

    path = [str(pathlib.Path(__file__).parent), *(one for one in sys.path if one)]
    command = [sys.executable, program, "--child", json.dumps(order)]
    with environment() as found:
        env = found | {"PYTHONPATH": os.pathsep.join(path)} | variables
        run = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise RuntimeError(f"{order}: {run.stderr[-3000:]}")
    return json.loads(run.stdout.splitlines()[-1])


def in_two_processes(program, *arguments, **variables):
    """What a program prints as JSON objects in two processes with one thread each: for each key a list of both values.

    Args:
        program: It is run with `--child`, its rank, and the file of a store to meet at, before other arguments.
        variables: In its environment.
    """
    path = [str(pathlib.Path(__file__).parent), *(one for one in sys.path if one)]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(path), "OMP_NUM_THREADS": "1"} | variables
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with tempfile.TemporaryDirectory() as folder:
        store = os.path.join(folder, "store")
        commands = [[sys.executable, program, "--child", str(rank), store, *arguments] for rank in range(2)]
        runs = [subprocess.Popen(command, env=env, **pipes) for command in commands]
        try:
            outputs = [run.communicate(timeout=500) for run in runs]
        finally:
            for run in runs:
                run.kill()
    for run, (_, errors) in zip(runs, outputs):
        if run.returncode != 0:
            raise RuntimeError(f"{program}: {errors[-3000:]}")
    both = [json.loads(output.splitlines()[-1]) for output, _ in outputs]
    return {name: [one[name] for one in both] for name in both[0]}


def peaks_of(run, model, steps):
    """Peaks of steps of a model above what is there before each, in bytes, and their seconds of processor time."""
    found = []
    for _ in range(steps):
        model.zero_grad(set_to_none=True)
        found.append(peak_of(run)[:2])
    return [list(one) for one in zip(*found)]


def peak_of(run, counts_updates=True):
    """The peak in bytes above what is there before, the seconds of processor time, and the result; what optimizers take
    while they update may be left out."""
    from remat_opt.torch._measure_child import Heap
    from torch.optim import optimizer

    heap, peaks, hooks = Heap(), [], []
    if not counts_updates:
        hooks = [
            optimizer.register_optimizer_step_pre_hook(lambda *_: peaks.append(heap.peak())),
            optimizer.register_optimizer_step_post_hook(lambda *_: heap.reset()),
        ]
    gc.collect()
    before = heap.live()
    heap.reset()
    start = time.process_time()
    result = run()
    seconds = time.process_time() - start
    peaks.append(heap.peak())
    for hook in hooks:
        hook.remove()
    return max(peaks) - before, seconds, result


def _eager(model, memory, keywords):
    return model, None


def _checkpoint(model, memory, keywords):
    from torch.utils.checkpoint import checkpoint

    for unit in models.units(model):
        unit.forward = functools.partial(checkpoint, unit.forward, use_reentrant=False)
    return model, None


def _save_on_cpu(model, memory, keywords):
    import torch

    def run(*inputs):
        with torch.autograd.graph.save_on_cpu():
            return model(*inputs)

    return run, None


def _compile(model, memory, keywords):
    import torch
    import torch._functorch.config

    if memory is not None:
        torch._functorch.config.activation_memory_budget = float(memory)
    return torch.compile(model), None


def _planned(inner):
    def run(model, memory, keywords):
        import remat_opt.torch
        import torch

        if isinstance(offload := keywords.get("offload"), dict):
            keywords["offload"] = remat_opt.torch.Offload(**offload)
        backend = remat_opt.torch.backend(memory, inner, **keywords)
        return torch.compile(model, backend=backend), backend

    return run


RUNS = {
    "eager": _eager,
    "checkpoint": _checkpoint,
    "save_on_cpu": _save_on_cpu,
    "compile": _compile,
    "aot_eager": _planned("aot_eager"),
    "inductor": _planned("inductor"),
}


def child(order):
    """Measures in this process."""
    import torch

    torch.set_num_threads(1)
    model, inputs = models.make(order["model"])
    plain = gradients(model, model, inputs)
    run, backend = RUNS[order["config"]](model, order["memory"], order["keywords"])
    mine = gradients(model, run, inputs)
    result = {"bits": digest(mine) == digest(plain), "error": error(mine, plain)}
    del mine, plain
    walls = []

    def step():
        start = time.perf_counter()
        run(*inputs).backward()
        walls.append(time.perf_counter() - start)

    peaks, times = peaks_of(step, model, STEPS)
    result |= {"peak": max(peaks[1:]), "seconds": min(times[1:]), "wall": min(walls[1:])}
    result["reports"], result["second_memory"] = [], 0
    if backend is not None:
        from remat_opt import _native

        result["reports"] = [one.as_dict() for one in backend.reports]
        result["second_memory"] = _native.moved_bytes()[3]
    print(json.dumps(result))


def gradients(model, run, inputs):
    """Loss and gradients of one step."""
    import torch

    torch.manual_seed(1)
    model.zero_grad(set_to_none=True)
    loss = run(*inputs)
    loss.backward()
    found = {"loss": loss.detach().clone()} | {name: one.grad for name, one in model.named_parameters()}
    model.zero_grad(set_to_none=True)
    return found


def digest(values):
    """A hash of the bits."""
    content = hashlib.sha256()
    for value in values.values():
        content.update(value.contiguous().numpy().tobytes())
    return content.hexdigest()


def error(mine, plain):
    """Largest difference of a gradient, relative to the norm of all."""
    whole = sum(float(one.double().square().sum()) for one in plain.values()) ** 0.5
    return max(float((mine[name] - one).double().norm()) / whole for name, one in plain.items())


if __name__ == "__main__":
    if sys.argv[1] == "--child":
        child(json.loads(sys.argv[2]))
    else:
        print(json.dumps(measure(*sys.argv[1:]), indent=2))
