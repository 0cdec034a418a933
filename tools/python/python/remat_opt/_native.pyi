"""The native side of `remat_opt`."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike

VERSION: str
"""The version of the package."""

def run(arguments: Sequence[str | PathLike[str]]) -> int:
    """Runs the command line and gives its exit status. The first word stands for the program."""

def call(arguments: Sequence[str | PathLike[str]], progress: Callable[..., object] | None = None) -> str:
    """Runs the command that `arguments` name, without the program, and gives the object that it prints with `--format
    json`."""

def embed(program: str | PathLike[str], arguments: Sequence[str], environments: Sequence[str | PathLike[str]]) -> None:
    """Says how the commands start a process of their own, and which environments this process has its packages
    from."""

def arena_library() -> bytes:
    """The library with which ONNX Runtime obeys plans of memory, as a file. `OSError` on other systems than Linux."""

def simulate_allocations(
    settings: str, total_bytes: int, free_bytes: int, requests: Sequence[tuple[int, int]], allowed_bytes: int | None = None
) -> tuple[dict[str, int], tuple[int, int], tuple[int, str] | None]:
    """What PyTorch's caching allocator makes of requests: names of blocks with their bytes, negative where they are freed. The
    figures by name, the places of the requests after which most was allocated and reserved, and that of the one that
    failed, with why. `ValueError` for settings (`PYTORCH_CUDA_ALLOC_CONF`) that nobody simulates."""

def replay_allocations(
    settings: str, total_bytes: int, free_bytes: int, entries: Sequence[tuple[str, int, int, int]]
) -> tuple[list[dict[str, int]], dict[str, int], list[tuple[int, int, list[tuple[int, bool]]]]]:
    """Does what a recorded program did: actions with address, bytes and stream. The figures at each `snapshot` and at the
    end, and the segments then: address, bytes, and blocks with whether they are given out. `ValueError` at the first entry
    at which the record and the simulation part."""

def rounded_allocation(settings: str, bytes: int) -> int:
    """The block that a request gets, in bytes."""

def model_hash(path: str | PathLike[str]) -> str:
    """The hash of a file, as plans of memory name it."""

def needs_arena_library(path: str | PathLike[str]) -> bool:
    """Whether a model moves results to a second memory, so that its sessions need the library."""

def heap_meter() -> bytes:
    """The library that counts a process's heap where it is preloaded: `remat_heap_live`, `remat_heap_peak`,
    `remat_heap_reset`. `OSError` on other systems than Linux with glibc."""

def bytes_of(text: str) -> int:
    """Bytes as the command line takes them, `256MiB`. `ValueError` for what is none."""

class Pages:
    """The second memory in a folder, on Linux: pages of a file without a name. `OSError` where a page cannot be written or
    read."""

    def __init__(self, folder: str | PathLike[str] | None = None) -> None: ...
    def write(self, address: int, bytes: int) -> int:
        """Begins to write bytes from an address on, which stay there until `wait` returns; the number of their page."""

    def wait(self, page: int) -> None:
        """Returns when a page is written."""

    def announce(self, page: int) -> None:
        """Begins to read a page ahead."""

    def read(self, page: int, address: int, bytes: int) -> None:
        """Reads a page to an address, where the caller owns that many bytes."""

    def release(self, page: int) -> None:
        """Nobody needs a page any more."""

def moved_bytes() -> tuple[int, int, int, int]:
    """Bytes that this process wrote to second memories, that it read from them, that are there now, and the most that
    were."""

class Batch:
    """A proof that a model computes every member of a batch by itself. Where that is not proved, `ValueError` with the
    sentence that says why not, and the op that it names."""

    dim: str
    """The name of the dimension that is the batch."""
    inputs: dict[str, int | None]
    """By input the axis that is the batch."""
    outputs: dict[str, int | None]
    """By output the axis that is the batch; without one the output is the same whatever the batch."""

    def __init__(
        self, path: str | PathLike[str], dim: str | None = None, ranges: Mapping[str, tuple[int, int]] = ...
    ) -> None: ...
    def other_bits(
        self, dims: Mapping[str, int], parts: Sequence[tuple[int, int]], threads: int
    ) -> tuple[str, str] | None:
        """The first op, by name and kind, that may round otherwise in one of these parts, each from a member to before
        another one, than in all of the batch."""

class ArenaPlans:
    """The plans of a file. `OSError` where it cannot be read, `ValueError` with the line that is not as it should
    be."""

    level: str
    """The graph optimization level of the sessions that the plans are for."""
    dims: list[tuple[str, int, int]]
    """Name, smallest and largest size of every open dimension."""
    block_bytes: int
    """The largest block of any sizes that the plans are for."""

    def __init__(self, path: str | PathLike[str]) -> None: ...
    def run_bytes(self, sizes: Mapping[str, int]) -> int | None:
        """Bytes of a run with these sizes of the open dimensions; `None` where they are more than any memory has."""
