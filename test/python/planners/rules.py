"""Rules that were published, in a few lines each: Y. Pisarchyk and J. Lee, "Efficient Memory Management for Deep Neural Net Inference" (2020), which
TensorFlow Lite took up for phones."""

from __future__ import annotations

from .buffers import Buffer


def _fitting(buffers: list[Buffer], placed: dict[int, int], at: int) -> int:
    """The smallest gap between what is placed already and needed at the same time, else the end of that."""
    new = buffers[at]
    meeting = (other for other in placed if buffers[other].begin < new.end and new.begin < buffers[other].end)
    end, best = 0, None
    for other in sorted(meeting, key=lambda other: placed[other]):
        gap = placed[other] - end
        if gap >= new.size and (best is None or gap < best[0]):
            best = gap, end
        end = max(end, placed[other] + buffers[other].size)
    return end if best is None else best[1]


def by_size(buffers: list[Buffer]) -> list[int]:
    """Greedy by size, algorithm 3: the largest first."""
    placed: dict[int, int] = {}
    for at in sorted(range(len(buffers)), key=lambda at: -buffers[at].size):
        placed[at] = _fitting(buffers, placed, at)
    return [placed[at] for at in range(len(buffers))]


def by_breadth(buffers: list[Buffer]) -> list[int]:
    """Greedy by breadth, algorithm 2 with offsets: the times at which most is needed first, at each the largest first."""
    times = sorted({buffer.begin for buffer in buffers})
    alive = [[at for at, b in enumerate(buffers) if b.begin <= time < b.end] for time in times]
    placed: dict[int, int] = {}
    for here in sorted(alive, key=lambda here: -sum(buffers[at].size for at in here)):
        for at in sorted(set(here) - placed.keys(), key=lambda at: (-buffers[at].size, at)):
            placed[at] = _fitting(buffers, placed, at)
    return [placed[at] for at in range(len(buffers))]
