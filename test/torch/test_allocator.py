"""PyTorch's caching allocator, simulated, beside what it did on a GPU."""

import pytest
import recordings
from remat_opt import _native

COUNTS = ("allocated", "allocated_peak", "requested_peak", "reserved", "reserved_peak")


@pytest.fixture(scope="module")
def recorded():
    return recordings.load()


def replayed(recording, settings=None):
    entries = [tuple(entry) for entry in recording["trace"]]
    total = recording["total"]
    return _native.replay_allocations(recording["setting"] if settings is None else settings, total, total, entries)


def test_every_allocation_of_every_recording_is_reproduced(recorded):
    assert len(recorded) == 72
    for name, recording in recorded.items():
        snapshots, _, segments = replayed(recording)
        # Each mark took a snapshot.
        assert len(snapshots) == len(recording["marks"]), name
        for mark, found in zip(recording["marks"], snapshots, strict=True):
            assert {key: mark[key] for key in COUNTS} == {key: found[key] for key in COUNTS}, (name, mark["at"])
        expected = [
            (one["address"], one["total_size"], [(block[1], block[3] != "inactive") for block in one["blocks"]])
            for one in recording["segments"]
        ]
        assert segments == expected, name


def test_another_setting_or_a_changed_record_is_told_from_what_happened(recorded):
    recording = recorded["vit-plain-default"]
    with pytest.raises(ValueError, match="entry 0: recorded segment_alloc"):
        replayed(recording, "expandable_segments:True")
    changed = [list(entry) for entry in recording["trace"]]
    place = next(at for at, entry in enumerate(changed) if at > 1000 and entry[0] == "alloc")
    changed[place][1] += 512
    with pytest.raises(ValueError, match=f"entry {place}: recorded alloc"):
        replayed({**recording, "trace": changed})


def test_requests_alone_reserve_nearly_what_was_reserved(recorded):
    """Without the addresses of the device: which of two equal blocks is taken may differ."""
    for name, recording in recorded.items():
        if "collect" in name or "split" in name:
            continue
        numbers, requests = {}, []
        for action, address, size, _ in recording["trace"]:
            if action == "alloc":
                numbers[address] = len(requests) + 1
                requests.append((numbers[address], size))
            elif action == "free_requested":
                requests.append((numbers.pop(address), -1))
        total = recording["total"]
        found, _, failed = _native.simulate_allocations(recording["setting"], total, total, requests)
        assert failed is None
        peak = max(mark["reserved_peak"] for mark in recording["marks"])
        assert abs(found["reserved_peak"] - peak) <= 0.03 * peak, name


def test_settings_that_nobody_simulates_are_refused():
    for settings in ("backend:cudaMallocAsync", "large_segment_size_mb:40", "colour:blue", "max_split_size_mb:2"):
        with pytest.raises(ValueError, match="allocator's settings"):
            _native.simulate_allocations(settings, 1 << 30, 1 << 30, [])
    assert _native.rounded_allocation("roundup_power2_divisions:4", 1200) == 1536
