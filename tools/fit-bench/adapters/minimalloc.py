"""The rules of MiniMalloc (Moffitt, ASPLOS 2023) without its search: the buffer that can lie lowest is next, on top of all that
it meets; of several, the first by length of life (W), area (A) and the most that is live beside it (T)."""

from adapter import Adapter
from cases import ALIGNMENT


class MiniMalloc(Adapter):
    asked = {("+ offsets", "buffers"): {rule: {"rule": rule} for rule in ("WAT", "TAW", "TWA")}}

    def place(self, buffers, options):
        live = [0] * max(upper for _, upper, _ in buffers)
        for lower, upper, size in buffers:
            for time in range(lower, upper):
                live[time] += size
        keys = {
            "W": lambda lower, upper, size: upper - lower,
            "A": lambda lower, upper, size: size * (upper - lower),
            "T": lambda lower, upper, size: max(live[lower:upper]),
        }
        rank = [tuple(-keys[letter](*buffer) for letter in options["rule"]) for buffer in buffers]
        offsets, left = [0] * len(buffers), set(range(len(buffers)))
        while left:
            at = min(left, key=lambda at: (offsets[at], rank[at], at))
            left.remove(at)
            lower, upper, size = buffers[at]
            top = -(-(offsets[at] + size) // ALIGNMENT) * ALIGNMENT
            for other in left:
                if buffers[other][0] < upper and lower < buffers[other][1]:
                    offsets[other] = max(offsets[other], top)
        return offsets
