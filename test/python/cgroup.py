"""A process within a limit of memory that the kernel keeps: a control group of version 1 or 2."""

import contextlib
import dataclasses
import itertools
import os
import pathlib
import subprocess

ROOT = pathlib.Path("/sys/fs/cgroup")
NUMBERS = itertools.count()


@dataclasses.dataclass(frozen=True)
class Ended:
    """How a process ended that had a limit."""

    status: int
    out: str
    err: str
    most_bytes: int | None
    """What it was charged for at most; `None` where the kernel does not tell."""


def why_not():
    """Why no process can have a limit here; `None` where one can."""
    try:
        group = _make()
    except OSError as error:
        return f"no control group of memory can be made ({error})"
    os.rmdir(group)
    return None


def run(limit, command, most_read):
    """Runs a command with so many bytes, the pages of the files that it reads among them, and none of them in the cache of
    the kernel when it starts. Where it needs pages of its code that have no room, the kernel may drop and read them again
    for ever: a process that reads more than `most_read` bytes from the disk is killed, too."""
    group = _make()
    try:
        (group / _names(group)[0]).write_text(str(limit))
        drop_caches()
        enter = 'echo $$ > "$0/cgroup.procs" && exec "$@"'
        line = ["sh", "-c", enter, group, *map(str, command)]
        with subprocess.Popen(line, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            while True:
                try:
                    out, err = process.communicate(timeout=0.5)
                    break
                except subprocess.TimeoutExpired:
                    if _read_bytes(process.pid) > most_read:
                        process.kill()
        most = None
        with contextlib.suppress(OSError):
            most = int((group / _names(group)[1]).read_text())
        return Ended(process.returncode, out, err, most)
    finally:
        os.rmdir(group)


def _read_bytes(pid):
    """What a process has read from the disk, pages of mapped files among it; nothing where the kernel does not tell."""
    with contextlib.suppress(OSError):
        lines = dict(line.split(": ") for line in pathlib.Path(f"/proc/{pid}/io").read_text().splitlines())
        return int(lines["read_bytes"])
    return 0


def drop_caches():
    """Has the kernel forget the files that it has read, where this process may say so."""
    os.sync()
    with contextlib.suppress(OSError):
        pathlib.Path("/proc/sys/vm/drop_caches").write_text("3")


def _make():
    name = f"remat-{os.getpid()}-{next(NUMBERS)}"
    if (ROOT / "memory" / "memory.limit_in_bytes").exists():
        group = ROOT / "memory" / name
        group.mkdir()
        return group
    with contextlib.suppress(OSError):
        (ROOT / "cgroup.subtree_control").write_text("+memory")
    group = ROOT / name
    group.mkdir()
    if not (group / "memory.max").exists():
        group.rmdir()
        raise OSError("the controller of memory is not there")
    with contextlib.suppress(OSError):
        (group / "memory.swap.max").write_text("0")
    return group


def _names(group):
    """The files of the limit, and of the most that was taken."""
    is_first = (group / "memory.limit_in_bytes").exists()
    return ("memory.limit_in_bytes", "memory.max_usage_in_bytes") if is_first else ("memory.max", "memory.peak")
