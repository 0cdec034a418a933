"""The planner of this project, through its interface in C."""

from __future__ import annotations

import ctypes
import pathlib

from .buffers import Buffer, Graph

ROOT = pathlib.Path(__file__).parents[3]
FOLDERS = [ROOT / "target" / profile for profile in ("release", "debug")]
EFFORT = 100_000


class _Buffer(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("size", "begin", "end")]


class _Value(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_uint64), ("producer", ctypes.c_uint32), ("stays", ctypes.c_uint32)]


class _Pair(ctypes.Structure):
    _fields_ = [("op", ctypes.c_uint32), ("other", ctypes.c_uint32)]


class _Dag(ctypes.Structure):
    _fields_ = [
        ("op_count", ctypes.c_size_t),
        ("workspace", ctypes.c_void_p),
        ("values", ctypes.POINTER(_Value)),
        ("value_count", ctypes.c_size_t),
        ("reads", ctypes.POINTER(_Pair)),
        ("read_count", ctypes.c_size_t),
        ("after", ctypes.c_void_p),
        ("after_count", ctypes.c_size_t),
    ]


def library() -> pathlib.Path | None:
    """The newest `libremat_planner_c.so` that was built; `None` where there is none."""
    found = [path for folder in FOLDERS if (path := folder / "libremat_planner_c.so").exists()]
    return max(found, key=lambda path: path.stat().st_mtime, default=None)


def missing() -> str | None:
    return None if library() else "remat-planner-c is not built: `cargo build --release -p remat-planner-c`"


def _call(name: str, *arguments: object) -> None:
    code = getattr(ctypes.CDLL(str(library())), name)(*arguments)
    assert code == 0, f"{name} says {code}"


def place(buffers: list[Buffer], effort: int = EFFORT, alignment: int = 16) -> list[int]:
    given = (_Buffer * len(buffers))(*[(b.size, b.begin, b.end) for b in buffers])
    offsets, height = (ctypes.c_uint64 * len(buffers))(), ctypes.c_uint64()
    _call(
        "remat_place",
        given,
        ctypes.c_size_t(len(buffers)),
        ctypes.c_uint64(alignment),
        ctypes.c_uint64(effort),
        offsets,
        ctypes.byref(height),
    )
    assert height.value == max((o + b.size for o, b in zip(offsets, buffers, strict=True)), default=0)
    return list(offsets)


def order(graph: Graph, effort: int = EFFORT) -> tuple[list[int], int, int]:
    """The ops in an order of low peak, that peak, and the bound that no order undercuts."""
    ops, pairs = len(graph.reads), [(op, value) for op, values in enumerate(graph.reads) for value in sorted(values)]
    values = [(b.size, b.begin, at in graph.stays) for at, b in enumerate(graph.buffers)]
    given, reads = (_Value * len(values))(*values), (_Pair * len(pairs))(*pairs)
    dag = _Dag(ops, None, given, len(values), reads, len(pairs), None, 0)
    found, peak, bound = (ctypes.c_uint32 * ops)(), ctypes.c_uint64(), ctypes.c_uint64()
    _call("remat_order", ctypes.byref(dag), ctypes.c_uint64(effort), found, ctypes.byref(peak), ctypes.byref(bound))
    return list(found), peak.value, bound.value
