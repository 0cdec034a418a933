"""The native side of `remat_opt`."""

from collections.abc import Callable, Sequence
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

def heap_meter() -> bytes:
    """The library that counts a process's heap where it is preloaded: `remat_heap_live`, `remat_heap_peak`,
    `remat_heap_reset`. `OSError` on other systems than Linux with glibc."""
