"""What depends on the device. No CUDA device takes part: what is asked of one is answered by the tests."""

import types

import pytest
import torch
from remat_opt.torch import UnsupportedGraph, _measure, _measure_child, _peak, _storages
from remat_opt.torch._container import free_in_container
from remat_opt.torch._effects import refuse_unsupported
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

MIB = 1 << 20


def value(device, size=4):
    """A traced tensor of some bytes."""
    return FakeTensor(FakeTensorMode(), torch.empty(size, dtype=torch.uint8, device="meta"), torch.device(device))


def graph_on(*devices):
    graph = torch.fx.Graph()
    for index, device in enumerate(devices):
        graph.placeholder(f"x{index}").meta["val"] = value(device)
    return graph


@pytest.mark.parametrize("kind", ["mps", "xpu"])
def test_other_devices_are_refused_by_name(kind):
    with pytest.raises(UnsupportedGraph, match=rf"`x1`: it lies on `{kind}`"):
        refuse_unsupported(graph_on("cpu", kind))


def test_a_plan_is_for_one_device():
    refuse_unsupported(graph_on("cpu", "cuda:1", "cuda:1"))
    with pytest.raises(UnsupportedGraph, match="`x2`: it lies on cuda:1 and others on cuda:0"):
        refuse_unsupported(graph_on("cpu", "cuda:0", "cuda:1"))
    assert _storages.device_of(graph_on("cpu", "cuda:1")) == "cuda:1"
    assert _storages.device_of(graph_on("cpu")) == "cpu"


def test_sizes_are_those_of_the_allocator_as_it_is_set(monkeypatch):
    monkeypatch.delenv("PYTORCH_ALLOC_CONF", raising=False)
    monkeypatch.delenv("PYTORCH_CUDA_ALLOC_CONF", raising=False)
    for settings, size, block in [
        ("", 1, 512),
        ("", 513, 1024),
        ("roundup_power2_divisions:4", 1200 * MIB, 1280 * MIB),
        ("nobody:knows", 513, 1024),
    ]:
        _storages._cuda_bytes.cache_clear()
        monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", settings)
        assert _storages.storage_bytes(value("cuda", size)) == block
    assert _storages.storage_bytes(value("cpu", 65)) == 128
    _storages._cuda_bytes.cache_clear()


class Device:
    """Answers for `torch.cuda`: each run of an op takes some bytes for itself and some time."""

    def __init__(self, monkeypatch):
        self.now, self.peak, self.taken, self.waits, self.asked = 0.0, 0, 100, 0, set()
        fake = types.SimpleNamespace(
            Event=lambda enable_timing: Event(self),
            current_stream=lambda device: self.asked.add(device),
            synchronize=self.synchronize,
            reset_peak_memory_stats=self.reset,
            memory_allocated=lambda device: self.taken,
            max_memory_allocated=lambda device: self.peak,
            memory_reserved=lambda device: 160,
            mem_get_info=lambda device: (1000, 2000),
        )
        monkeypatch.setattr(torch, "cuda", fake)

    def reset(self, device):
        self.asked.add(device)
        self.peak = self.taken

    def synchronize(self, device):
        self.waits += 1

    def op(self, value):
        self.peak = max(self.peak, self.taken + 40)
        self.now += 2.0
        return value


class Event:
    def __init__(self, device):
        self.device = device

    def record(self, stream):
        self.at = self.device.now

    def elapsed_time(self, other):
        return other.at - self.at


def test_an_op_is_timed_by_the_device_which_is_waited_for_once_in_several_runs(monkeypatch):
    device = Device(monkeypatch)
    monkeypatch.setattr(torch, "ops", types.SimpleNamespace(mine=types.SimpleNamespace(op=device.op)))
    meter = _measure_child.Cuda(torch.device("cuda:1"))
    assert _measure_child.measure_call({"op": "mine.op", "args": [1], "kwargs": {}}, meter) == (2_000_000, 40)
    runs = device.now / 2.0 - 1
    assert device.waits * _measure_child._REPEATS == runs
    assert device.asked == {torch.device("cuda:1")}


def test_what_the_allocator_holds_and_does_not_use_is_free(monkeypatch):
    Device(monkeypatch)
    assert _peak.free_bytes("cuda:1") == 1000 + 160 - 100


def test_costs_are_those_of_the_settings(monkeypatch):
    known = {_measure._environment("cpu")}
    monkeypatch.setattr(torch, "get_float32_matmul_precision", lambda: "medium")
    known.add(_measure._environment("cpu"))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: f"device of {device}")
    monkeypatch.setattr(torch._C, "_cuda_getDriverVersion", lambda: 13000, raising=False)
    known.add(_measure._environment("cuda:0"))
    known.add(_measure._environment("cuda:1"))
    for name in ("benchmark", "deterministic"):
        monkeypatch.setattr(torch.backends.cudnn, name, True)
        known.add(_measure._environment("cuda:0"))
    monkeypatch.setattr(torch._C, "_get_cudnn_allow_tf32", lambda: "no")
    known.add(_measure._environment("cuda:0"))
    monkeypatch.setattr(torch._C, "_cuda_getDriverVersion", lambda: 13010, raising=False)
    known.add(_measure._environment("cuda:0"))
    assert len(known) == 8


def write(folder, **files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(f"{text}\n")


def test_the_limit_of_the_container_counts(tmp_path):
    assert free_in_container(tmp_path) is None
    write(tmp_path / "proc/self", cgroup="0::/job/step")
    group = tmp_path / "sys/fs/cgroup/job"
    write(group, memory__max=1000, memory__current=700, memory__stat="anon 300\ninactive_file 200")
    write(group / "step", memory__max="max", memory__current=600)
    assert free_in_container(tmp_path) == 500
    write(group / "step", memory__max=650)
    assert free_in_container(tmp_path) == 50


def test_the_limit_of_an_older_container_counts_too(tmp_path):
    write(tmp_path / "proc/self", cgroup="3:cpu:/x\n4:memory,hugetlb:/not/here")
    base = tmp_path / "sys/fs/cgroup/memory"
    write(base, memory__limit_in_bytes=800, memory__usage_in_bytes=300, memory__stat="total_inactive_file 100")
    assert free_in_container(tmp_path) == 600
    # What is no limit is said by a large number.
    write(base, memory__limit_in_bytes=9223372036854771712)
    assert free_in_container(tmp_path) is None
