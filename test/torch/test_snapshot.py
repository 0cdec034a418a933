"""Snapshots of PyTorch's allocator, read without running anything of them, and other settings for what they record."""

import json
import os
import pickle

import pytest
import recordings
import torch
from remat_opt import ModelError, UsageError
from remat_opt.torch import replay
from remat_opt.torch._gpu import command

NAMES = ("vit-plain-default", "gpt-plain-expandable", "unet-plain-split", "loop-plain-roundup", "resnet18-bf16-default")


def snapshot_of(recording, begin=0, end=None):
    """A recording as `torch.cuda.memory._snapshot()` gives it."""
    trace = []
    for action, address, size, stream in recording["trace"][begin:end]:
        place = "device_free" if action == "oom" else "addr"
        frames = [{"name": "forward", "filename": "model.py", "line": 3}]
        trace.append({"action": action, place: address, "size": size, "stream": stream, "time_us": 1, "frames": frames})
    keys = ("address", "size", "requested_size", "state")
    segments = [
        {**one, "device": 0, "blocks": [dict(zip(keys, block, strict=True)) for block in one["blocks"]]} for one in recording["segments"]
    ]
    return {"segments": segments, "device_traces": [trace, []], "allocator_settings": recording["allocator_settings"]}


@pytest.fixture(scope="module")
def recorded():
    return recordings.load(lambda name: name in NAMES)


@pytest.fixture
def written(recorded, tmp_path):
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(pickle.dumps(snapshot_of(recorded["vit-plain-default"])))
    return path


@pytest.mark.parametrize("name", NAMES)
def test_what_a_gpu_reserved_is_reproduced(recorded, name):
    recording = recorded[name]
    found = replay(snapshot_of(recording), [])
    assert found.is_reproduced and found.difference is None and found.settings == recording["setting"]
    assert found.reserved_bytes == max(mark["reserved_peak"] for mark in recording["marks"])
    assert found.allocated_bytes == max(mark["allocated_peak"] for mark in recording["marks"])
    assert found.lost_bytes == found.reserved_bytes - found.allocated_bytes >= 0


def test_other_settings_reserve_what_they_reserved_on_the_gpu(recorded):
    """The same program was recorded under other settings, so what is said of them is known."""
    others = recordings.load(lambda name: name in ("vit-plain-expandable", "vit-plain-roundup", "vit-plain-split"))
    settings = {one["setting"]: max(mark["reserved_peak"] for mark in one["marks"]) for one in others.values()}
    found = replay(snapshot_of(recorded["vit-plain-default"]), list(settings))
    assert [one.settings for one in found.tried] == ["", *settings]
    assert found.tried[0].reserved_bytes == found.reserved_bytes
    for one in found.tried[1:]:
        assert abs(one.reserved_bytes - settings[one.settings]) <= 0.03 * settings[one.settings], one
        assert one.failure is None and one.lost_bytes >= 0
    assert len({one.reserved_bytes for one in found.tried}) > 1


def test_a_record_that_begins_late_counts_what_was_there(recorded):
    recording = recorded["vit-plain-default"]
    place = len(recording["trace"]) // 2
    whole, late = replay(snapshot_of(recording), []), replay(snapshot_of(recording, place), [])
    assert not late.is_reproduced and "were allocated before the record begins" in late.difference
    assert late.reserved_bytes == whole.reserved_bytes
    assert late.tried[0].reserved_bytes == pytest.approx(whole.reserved_bytes, rel=0.1)


def test_less_memory_than_a_program_needs_is_found(recorded):
    snapshot = snapshot_of(recorded["vit-plain-default"])
    plain = replay(snapshot, [])
    tight = replay(snapshot, ["expandable_segments:True"], memory=plain.allocated_bytes // 2)
    assert all("out of memory" in one.failure for one in tight.tried) and "out of memory" in str(tight)
    # A device that is as large as what was reserved, whose record ends out of memory.
    left = plain.reserved_bytes - sum(one["total_size"] for one in snapshot["segments"])
    snapshot["device_traces"][0].append({"action": "oom", "device_free": left, "size": 1 << 40, "stream": 0})
    full = replay(snapshot, ["roundup_power2_divisions:1,max_split_size_mb:32"])
    assert full.is_reproduced and full.reserved_bytes == plain.reserved_bytes and full.tried[0].failure is None


def test_a_simulation_that_parts_from_the_record_says_where(recorded):
    snapshot = snapshot_of(recorded["vit-plain-default"])
    snapshot["allocator_settings"] = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
    found = replay(snapshot, [])
    assert not found.is_reproduced and "entry 0" in found.difference and "not reproduced" in str(found)


def test_the_command_prints_a_table_or_json(written, capsys):
    assert command.main(["--snapshot", str(written)]) == 0
    printed = capsys.readouterr().out
    assert "reproduced entry by entry" in printed and "expandable_segments:True" in printed
    assert command.main(["--snapshot", str(written), "--settings", "max_split_size_mb:64", "--format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["format"] == "remat-replay/1" and report["lost_bytes"] == report["reserved_bytes"] - report["allocated_bytes"]
    assert [one["settings"] for one in report["tried"]] == ["", "max_split_size_mb:64"]


class Runs:
    def __reduce__(self):
        return os.mkdir, ("was-run",)


@pytest.mark.parametrize("held", [Runs(), {"device_traces": [[Runs()]], "segments": []}, torch.zeros(1), {1, range(3)}])
def test_nothing_of_a_pickle_runs(held, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.pickle").write_bytes(pickle.dumps(held))
    with pytest.raises(ModelError, match=r"the snapshot names `\w+[.]"):
        replay("bad.pickle")
    assert not (tmp_path / "was-run").exists()


def test_what_is_no_snapshot_is_refused_by_name(written, tmp_path):
    whole = written.read_bytes()
    for content in (b"", b"text", whole[: len(whole) // 2], pickle.dumps([1])):
        bad = tmp_path / "bad.pickle"
        bad.write_bytes(content)
        with pytest.raises(ModelError, match=r"bad.pickle` (is no pickle|holds a list)"):
            replay(bad)
    with pytest.raises(ModelError, match="cannot be read"):
        replay(tmp_path / "missing")
    with pytest.raises(ModelError, match="has no `device_traces`"):
        replay({})
    with pytest.raises(ModelError, match="_record_memory_history"):
        replay({"device_traces": [[]], "segments": []})
    entry = {"action": "alloc", "addr": 1, "size": 512, "stream": 0}
    with pytest.raises(ModelError, match="not as PyTorch writes it"):
        replay({"device_traces": [[{**entry, "size": "many"}]], "segments": []})
    block, segment = {"size": 512, "state": "inactive"}, {"address": 1, "total_size": 512}
    for wrong in (5, {}, segment, segment | {"blocks": [{**block, "size": "many"}]}, segment | {"blocks": [block], "address": -1}):
        with pytest.raises(ModelError, match="not as PyTorch writes it"):
            replay({"device_traces": [[entry]], "segments": [wrong]})
    huge = {**entry, "size": (1 << 63) - 1}
    assert not replay({"device_traces": [[huge, huge]], "segments": []}).is_reproduced
    two = {"device_traces": [[entry], [entry]], "segments": []}
    with pytest.raises(UsageError, match="devices 0, 1"):
        replay(two)
    with pytest.raises(UsageError, match="no record of device 5"):
        replay(two, device=5)
    with pytest.raises(UsageError, match="is not simulated"):
        replay(written, ["colour:blue"])
