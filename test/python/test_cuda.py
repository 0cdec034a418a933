"""Planned memory for the CUDA provider, over a CUDA runtime without a device (`fake_cuda.c`): no test here needs a GPU, and none says anything
of bits or times on one."""

import ctypes
import json
import shutil
import subprocess
import threading

import models
import onnx
import onnxruntime as ort
import pytest

FAKE = models.ROOT / "passes" / "onnxruntime" / "arena" / "tests" / "fake_cuda.c"
NETWORKS = [models.ROOT / "test" / "models" / f"{name}.onnx" for name in ("mlp_tiny_train", "unet_tiny_train")]
NETWORKS += [models.ROOT / "test" / "models" / "features" / f"{name}.onnx" for name in ("loop_captures", "dynamic_batch")]
CALLS = "mallocs frees bytes most wrong waits failed second".split()
ALIGNMENT = 256


class Settings(ctypes.Structure):
    _fields_ = [("plan", ctypes.c_char_p), ("library", ctypes.c_char_p), ("device", ctypes.c_int), ("record", ctypes.c_int)]


class Functions(ctypes.Structure):
    _fields_ = [
        ("alloc", ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_size_t)),
        ("free", ctypes.CFUNCTYPE(None, ctypes.c_size_t)),
        ("empty_cache", ctypes.CFUNCTYPE(None)),
        ("session", ctypes.c_int64),
    ]


class Event(ctypes.Structure):
    _fields_ = [("address", ctypes.c_uint64), ("bytes", ctypes.c_uint64), ("thread", ctypes.c_uint64)]


class Device:
    """A CUDA runtime of its own, and the arena library."""

    def __init__(self, folder, fake, library):
        self.path = folder / f"libcudart-{len(list(folder.glob('libcudart-*')))}.so"
        shutil.copy(fake, self.path)
        self.fake, self.arena = ctypes.CDLL(str(self.path)), ctypes.CDLL(str(library))
        self.arena.remat_cuda_open.restype = ctypes.c_char_p
        for name in ("load_begins", "load_ends", "close"):
            getattr(self.arena, f"remat_cuda_{name}").argtypes = [ctypes.c_int64]
        self.arena.remat_arena_events.argtypes = [ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t]
        self.arena.remat_arena_events.restype = ctypes.c_size_t
        self.arena.remat_arena_stats.argtypes = [ctypes.c_int64, ctypes.c_void_p, ctypes.c_size_t]

    def calls(self):
        counts = (ctypes.c_uint64 * len(CALLS))()
        self.fake.fake_counts(counts)
        return dict(zip(CALLS, counts, strict=True))

    def open(self, plan=None):
        settings = Settings(plan and str(plan).encode(), str(self.path).encode(), -1, 1)
        functions = Functions()
        why = self.arena.remat_cuda_open(ctypes.byref(settings), ctypes.byref(functions))
        assert why is None, why
        return Provider(self, functions)


class Provider:
    """What the CUDA provider does with the functions."""

    def __init__(self, device, functions):
        self.device, self.functions = device, functions

    def close(self):
        self.device.arena.remat_cuda_close(self.functions.session)

    def load(self, events):
        self.device.arena.remat_cuda_load_begins(self.functions.session)
        live = self.replay(events)
        self.device.arena.remat_cuda_load_ends(self.functions.session)
        return live

    def replay(self, events, live=None):
        """Makes requests: bytes, or, negative, the number of one that is freed. The addresses of all, and what is live."""
        addresses, live = [], {} if live is None else live
        for event in events:
            if event > 0:
                address = self.functions.alloc(event)
                assert address, "there is memory"
                below = [start + size for start, size in live.items() if start < address + event]
                assert all(end <= address for end in below), "live buffers overlap"
                live[address] = event
                addresses.append(address)
            else:
                address = addresses[-event - 1]
                self.functions.free(address)
                del live[address]
        return addresses, live

    def give(self, live):
        for address in live:
            self.functions.free(address)

    def figures(self):
        figures = (ctypes.c_uint64 * 11)()
        self.device.arena.remat_arena_stats(self.functions.session, figures, ctypes.sizeof(figures))
        names = "runs placed planned_outside missed refused at_load blocks block_bytes most_blocks outside_bytes most_outside"
        return dict(zip(names.split(), figures, strict=True))

    def events(self):
        """What was recorded, as a file of requests has it."""
        room = (Event * 100_000)()
        count = self.device.arena.remat_arena_events(self.functions.session, room, len(room))
        numbers, found = {}, []
        for event in room[:count]:
            if event.bytes:
                numbers[event.address] = 1 + sum(one > 0 for one in found)
                found.append(event.bytes)
            elif event.address in numbers:
                found.append(-numbers.pop(event.address))
        return found


@pytest.fixture(scope="module")
def fake(tmp_path_factory):
    path = tmp_path_factory.mktemp("fake") / "libfake.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-pthread", "-o", path, FAKE], check=True)
    return path


@pytest.fixture(scope="module")
def library(remat_opt, tmp_path_factory):
    """The arena library of the program."""
    out = tmp_path_factory.mktemp("library") / "model.onnx.arena"
    return planned(remat_opt, NETWORKS[0], out)["library"]


@pytest.fixture
def device(tmp_path, fake, library):
    return Device(tmp_path, fake, library)


def planned(remat_opt, network, output, *more):
    run = remat_opt(network, "-o", output, "--device", "cuda", "--format", "json", "--step-limit", "300", *more)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def said(run):
    """The error stream without its line breaks."""
    return " ".join(run.stderr.replace("│", " ").split())


def parts(plan):
    """The plan of loading, and the last one of runs: size, first and last time, rank, and whether it is an output."""
    load, run, now = [], [], None
    for line in plan.read_text().splitlines():
        words = line.split()
        if words[0] in ("load", "plan"):
            now = load if words[0] == "load" else run
            now.clear()
        elif now is not None and words[0] != "input":
            ranks = [int(rank) for rank in words[3].split(",")]
            now.append((int(words[0]), int(words[1]), int(words[2]), ranks, words[-1] == "output"))
    return load, run


def requests(buffers):
    """The events of buffers; outputs are held."""
    ends = [(last, -(number + 1)) for number, (_, _, last, _, output) in enumerate(buffers) if not output]
    begins = [(first, size) for size, first, *_ in buffers]
    return [event for _, event in sorted(ends + begins)]


def offsets(buffers):
    """The lowest free offset of each, in the order that makes the block lowest."""
    best = None
    for order in range(len(buffers[0][3])):
        placed = {}
        for at in sorted(range(len(buffers)), key=lambda at: buffers[at][3][order]):
            size, first, last, *_ = buffers[at]
            offset = 0
            for start, end in sorted(
                (start, start + -(-buffers[other][0] // ALIGNMENT) * ALIGNMENT)
                for other, start in placed.items()
                if buffers[other][1] < last and first < buffers[other][2]
            ):
                if start >= offset + size:
                    break
                offset = max(offset, end)
            placed[at] = offset
        block = max(start + -(-buffers[at][0] // ALIGNMENT) * ALIGNMENT for at, start in placed.items())
        best = min(best or (block, placed), (block, placed), key=lambda one: one[0])
    return best


@pytest.mark.parametrize("network", NETWORKS, ids=lambda path: path.stem)
def test_a_predicted_plan_is_followed_to_the_byte_and_says_what_it_does_not_know(network, remat_opt, device, tmp_path):
    plan = tmp_path / "model.onnx.arena"
    report = planned(remat_opt, network, plan)
    assert not report["is_recorded"]
    assert any("cudnn_conv_algo_search" in what for what in report["not_measured"])
    assert "cuda predicted" in plan.read_text().splitlines()
    load, run = parts(plan)
    assert not load
    block, places = offsets(run)
    assert block == report["run_block_bytes"]
    provider = device.open(plan)
    # Weights have memory of their own.
    _, weights = provider.load([1000, 2000])
    for _ in range(3):
        addresses, live = provider.replay(requests(run))
        base = addresses[0] - places[0]
        assert [address - base for address in addresses] == [places[at] for at in range(len(run))]
        provider.give(live)
    figures = provider.figures()
    assert (figures["placed"], figures["missed"], figures["refused"]) == (3 * len(run), 0, 0)
    assert (device.calls()["mallocs"], device.calls()["bytes"]) == (3, block + 3000)
    provider.give(weights)
    assert (device.calls()["bytes"], device.calls()["wrong"]) == (0, 0)
    provider.close()


def recorded(provider, run, weights):
    """Two runs of a session, recorded: the first tries algorithms, both work in something."""
    provider.load([*weights, 4096, -len(weights) - 1])
    load = provider.events()
    live, found = {}, []
    for trial in (True, False):
        events, numbers, count = [], {}, 0
        for event in requests(run):
            if event > 0:
                numbers[len(numbers) + 1] = count + 1
                count += 1
                events.append(event)
                if len(numbers) % 5 == 1:
                    count += 1
                    events += [10_000 if trial else 512, -count]
            else:
                events.append(-numbers[-event])
        provider.give(live)
        provider.events()
        _, live = provider.replay(events)
        found.append(provider.events())
    provider.give(live)
    return load, found


def test_a_recorded_plan_has_weights_and_runs_in_one_block(remat_opt, device, tmp_path):
    network, plan, file = NETWORKS[1], tmp_path / "model.onnx.arena", tmp_path / "requests.json"
    planned(remat_opt, network, plan)
    model = next(line for line in plan.read_text().splitlines() if line.startswith("model ")).split()[1]
    weights = [max(1, len(one.raw_data)) for one in onnx.load(network).graph.initializer]
    assert sum(weights) > 10_000
    recording = device.open()
    load, runs = recorded(recording, parts(plan)[1], weights)
    recording.close()
    runs = [{"dims": {}, "inputs": [], "events": events} for events in runs]
    file.write_text(
        json.dumps(
            {"format": "remat-requests/1", "model": model, "runtime": "1.31.1", "level": "all", "load": load, "runs": runs}
        )
    )
    report = planned(remat_opt, network, plan, "--requests", file)
    assert report["is_recorded"] and report["weights_in_block"]
    assert report["weight_bytes"] == sum(weights)
    assert report["not_measured"] == ["what the context, cuDNN and cuBLAS allocate themselves"]
    before = device.calls()
    provider = device.open(plan)
    addresses, held = provider.load(load)
    block = provider.figures()["block_bytes"]
    kept = sum(-(-size // ALIGNMENT) * ALIGNMENT for size in weights)
    assert block == max(kept + report["run_block_bytes"], kept + 4096)
    # Both kinds of runs are planned: the first one, and those that follow.
    for run in [runs[0], *[runs[1]] * 3]:
        found, live = provider.replay(run["events"], dict(held))
        assert all(addresses[0] <= address < addresses[0] + block for address in found)
        provider.give(set(live) - set(held))
    figures = provider.figures()
    assert (figures["missed"], figures["refused"], figures["runs"], figures["at_load"]) == (0, 0, 4, len(weights) + 1)
    after = device.calls()
    assert (after["mallocs"] - before["mallocs"], after["bytes"] - before["bytes"]) == (1, block)
    provider.give(held)
    assert device.calls()["bytes"] == before["bytes"]
    provider.close()
    # Requests of another model are refused.
    other = remat_opt(NETWORKS[0], "-o", plan, "--device", "cuda", "--requests", file)
    assert other.returncode == 2
    assert "are those of the model" in said(other)


def test_sizes_of_several_recorded_shapes_become_formulas(remat_opt, device, tmp_path):
    network, plan, file = NETWORKS[3], tmp_path / "model.onnx.arena", tmp_path / "requests.json"
    planned(remat_opt, network, plan)
    model = next(line for line in plan.read_text().splitlines() if line.startswith("model ")).split()[1]

    def events(batch):
        return [4 * batch * 24, 1000, -1, 64 * batch * 7, 4 * batch * 8, -2, -3]

    runs = [{"dims": {"batch": batch}, "inputs": [["x", [batch, 24]]], "events": events(batch)} for batch in (1, 2, 4, 8, 16)]
    head = {"format": "remat-requests/1", "model": model, "runtime": "1.31.1", "level": "all", "load": [5000]}
    file.write_text(json.dumps(head | {"runs": runs}))
    report = planned(remat_opt, network, plan, "--requests", file, "--shapes", "batch=1..32")
    assert report["dims"] == {"batch": [1, 32]}
    provider = device.open(plan)
    _, held = provider.load([5000])
    for batch in (3, 32, 7, 1):
        provider.give(set(provider.replay(events(batch), dict(held))[1]) - set(held))
    figures = provider.figures()
    assert (figures["runs"], figures["missed"], figures["refused"]) == (4, 0, 0)
    # One block, for the largest shape.
    assert (device.calls()["mallocs"], device.calls()["bytes"]) == (1, figures["block_bytes"])
    provider.give(held)
    provider.close()


def test_threads_of_two_sessions_have_blocks_of_their_own(remat_opt, device, tmp_path):
    plan = tmp_path / "model.onnx.arena"
    planned(remat_opt, NETWORKS[0], plan)
    events = requests(parts(plan)[1])
    providers = [device.open(plan) for _ in range(2)]
    failed = []

    def runs(provider):
        try:
            for _ in range(20):
                provider.give(provider.replay(events)[1])
        except AssertionError as error:
            failed.append(error)

    threads = [threading.Thread(target=runs, args=[providers[at % 2]]) for at in range(6)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not failed
    for provider in providers:
        figures = provider.figures()
        assert (figures["runs"], figures["missed"], figures["refused"]) == (60, 0, 0)
        assert figures["most_blocks"] <= 3
        provider.functions.empty_cache()
        provider.close()
    assert (device.calls()["bytes"], device.calls()["wrong"]) == (0, 0)


def test_sessions_tell_when_they_load(device, remat_opt, library, tmp_path):
    provider = device.open()

    def options(key, value):
        chosen = ort.SessionOptions()
        chosen.add_session_config_entry(key, str(value))
        chosen.register_custom_ops_library(str(library))
        return chosen

    def counted():
        assert provider.functions.alloc(100)
        figures = provider.figures()
        return figures["at_load"], figures["missed"]

    own = ("remat.arena.cuda", provider.functions.session)
    unknown = onnx.load(NETWORKS[0])
    unknown.graph.node[0].op_type = "Unknown"
    with pytest.raises(Exception, match="Unknown"):
        ort.InferenceSession(unknown.SerializeToString(), options(*own), providers=["CPUExecutionProvider"])
    # It began to load, and did not end.
    assert counted() == (1, 0)
    ort.InferenceSession(NETWORKS[0], options(*own), providers=["CPUExecutionProvider"])
    assert counted() == (1, 1)
    with pytest.raises(Exception, match="is no number of `remat_cuda_open`"):
        options("remat.arena.cuda", 99)
    planned(remat_opt, NETWORKS[0], tmp_path / "model.onnx.arena")
    with pytest.raises(Exception, match="is for the CUDA provider"):
        options("remat.arena.plan", tmp_path / "model.onnx.arena")
    provider.close()


def test_what_is_not_for_a_cuda_device_is_said(remat_opt, tmp_path):
    for arguments, why in [
        (["-o", "out.arena"], "add `--device cuda`"),
        (["-o", "out.onnx", "--device", "cuda"], "-o MODEL.onnx.arena"),
        (["-o", "out.arena", "--device", "cuda", "--budget", "50%"], "the model stays as it is"),
        (["-o", "out.arena", "--device", "cuda", "--requests", __file__], "cannot use"),
    ]:
        run = remat_opt(NETWORKS[0], *(tmp_path / word if word.startswith("out.") else word for word in arguments))
        assert run.returncode == 2, run.stderr
        assert why in said(run)
    assert not list(tmp_path.iterdir())
