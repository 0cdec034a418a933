"""Records what PyTorch's caching allocator does in three training steps of a model of `models.py` on a CUDA device.

    record.py MODEL VARIANT SETTING FOLDER

VARIANT: `plain` (AdamW), `sgd` (with momentum, one tensor at a time) or `bf16` (AdamW, autocast). SETTING: a key of `SETTINGS`.
Writes `FOLDER/MODEL-VARIANT-SETTING.json`: every allocation and release in order (`trace`), statistics at marked places (`marks`), and the
segments with their blocks at the end. Sizes are in bytes.
"""

import contextlib
import json
import os
import pathlib
import sys

SETTINGS = {
    "default": "",
    "expandable": "expandable_segments:True",
    "roundup": "roundup_power2_divisions:4",
    "split": "max_split_size_mb:32",
    "collect": "garbage_collection_threshold:0.6,max_split_size_mb:64",
}
STEPS = 3


def main(name, variant, setting, folder):
    # PyTorch reads this when it is imported; the first name is that of versions before 2.10.
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = os.environ["PYTORCH_ALLOC_CONF"] = SETTINGS[setting]
    import torch

    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
    import models

    torch.cuda.init()
    free_after_init, total = torch.cuda.mem_get_info()
    torch.cuda.memory._record_memory_history(enabled="all", context=None, stacks="python", max_entries=400_000)
    marks = []

    def mark(place):
        now = torch.cuda.memory_stats()
        marks.append(
            {
                "at": place,
                "entries": len(torch.cuda.memory._snapshot()["device_traces"][0]),
                "allocated": now["allocated_bytes.all.current"],
                "allocated_peak": now["allocated_bytes.all.peak"],
                "requested_peak": now["requested_bytes.all.peak"],
                "reserved": now["reserved_bytes.all.current"],
                "reserved_peak": now["reserved_bytes.all.peak"],
                "inactive_split": now["inactive_split_bytes.all.current"],
            }
        )

    model, inputs = models.make(name)
    model, inputs = model.cuda(), [tensor.cuda() for tensor in inputs]
    if variant == "sgd":
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, foreach=False)
    else:
        optimizer = torch.optim.AdamW(model.parameters())
    mark("model")
    for step in range(STEPS):
        with torch.autocast("cuda", torch.bfloat16) if variant == "bf16" else contextlib.nullcontext():
            loss = model(*inputs)
            loss = loss if loss.dim() == 0 else loss.float().square().mean()
        mark(f"forward {step}")
        loss.backward()
        mark(f"backward {step}")
        optimizer.step()
        mark(f"optimizer {step}")
        optimizer.zero_grad(set_to_none=True)
        del loss
        torch.cuda.synchronize()
        mark(f"step {step}")
    torch.cuda.empty_cache()
    mark("empty_cache")
    snapshot = torch.cuda.memory._snapshot()
    whole = ("address", "total_size", "allocated_size", "active_size", "requested_size", "stream", "segment_type")
    recording = {
        "torch": torch.__version__,
        "device": torch.cuda.get_device_name(),
        "total": total,
        "free_after_init": free_after_init,
        "free_at_end": torch.cuda.mem_get_info()[0],
        "model": name,
        "variant": variant,
        "setting": SETTINGS[setting],
        "allocator_settings": {key: str(value) for key, value in snapshot.get("allocator_settings", {}).items()},
        "entry": ["action", "address", "bytes", "stream"],
        "marks": marks,
        "trace": [
            [entry["action"], entry.get("addr", entry.get("device_free", 0)), entry["size"], entry.get("stream", 0)]
            for entry in snapshot["device_traces"][0]
        ],
        "segments": [
            {key: segment.get(key) for key in (*whole, "is_expandable")}
            | {
                "blocks": [
                    [block.get("address"), block["size"], block.get("requested_size"), block["state"]]
                    for block in segment["blocks"]
                ]
            }
            for segment in snapshot["segments"]
        ],
    }
    path = pathlib.Path(folder) / f"{name}-{variant}-{setting}.json"
    path.write_text(json.dumps(recording, separators=(",", ":")))


if __name__ == "__main__":
    main(*sys.argv[1:])
