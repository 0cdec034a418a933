"""What is kept between runs: JSON files in the user's cache folder."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import pathlib
import tempfile
from typing import Any


def folder() -> pathlib.Path:
    """`remat-opt/torch` in the folder that `XDG_CACHE_HOME` names, or in `~/.cache`."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return pathlib.Path(home) / "remat-opt" / "torch"


def key_of(value: Any) -> str:
    """A hash of an object that JSON takes."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:40]


def load(kind: str, key: str) -> Any:
    """What was stored under a key; `None` where there is nothing, or nothing that can be read."""
    try:
        return json.loads((folder() / kind / f"{key}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def store(kind: str, key: str, value: Any) -> None:
    """Stores an object, as a whole or not at all. A cache that cannot be written is none."""
    place = folder() / kind
    with contextlib.suppress(OSError):
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=place, delete=False, encoding="utf-8") as file:
            json.dump(value, file)
        os.replace(file.name, place / f"{key}.json")
