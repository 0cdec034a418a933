"""Each buffer in turn at the lowest offset that is free for its whole life: by time, as allocators meet them, or by size."""

from adapter import Adapter
from cases import ALIGNMENT


class FirstFit(Adapter):
    asked = {("+ offsets", "buffers"): {"by time": {"key": "lower"}, "by size": {"key": "size"}}}

    def place(self, buffers, options):
        key = {"lower": lambda at: buffers[at][0], "size": lambda at: -buffers[at][2]}[options["key"]]
        offsets, placed = [0] * len(buffers), []
        for at in sorted(range(len(buffers)), key=key):
            lower, upper, size = buffers[at]
            for begin, end, first, last in placed:
                if first < upper and lower < last:
                    if offsets[at] + size <= begin:
                        break
                    offsets[at] = max(offsets[at], -(-end // ALIGNMENT) * ALIGNMENT)
            placed = sorted([*placed, (offsets[at], offsets[at] + size, lower, upper)])
        return offsets
