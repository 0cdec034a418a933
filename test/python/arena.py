"""A session whose memory is planned, made with nothing but what the guide says, and what its library counted."""

import ctypes

import numpy as np
import onnxruntime as ort
from runtime import inputs

FIGURES = """
runs placed planned_outside missed refused at_load blocks block_bytes most_blocks outside_bytes most_outside_bytes used_bytes
most_used_bytes shapes waits waiting_nanoseconds refused_runs limit_bytes reserved_bytes most_reserved_bytes returned_bytes
weights_asked_bytes weights_dropped_bytes shared_bytes paged_out_bytes paged_in_bytes second_memory_bytes most_second_memory_bytes
""".split()


def options(library, plan, threads=1):
    """All that a user sets."""
    chosen = ort.SessionOptions()
    chosen.intra_op_num_threads = threads
    chosen.add_session_config_entry("remat.arena.plan", str(plan))
    chosen.register_custom_ops_library(str(library))
    return chosen


class Arena:
    """What the library counted."""

    def __init__(self, library):
        self.stats = ctypes.CDLL(str(library)).remat_arena_stats
        self.stats.argtypes = [ctypes.c_int64, ctypes.c_void_p, ctypes.c_size_t]
        self.stats.restype = ctypes.c_size_t

    def figures(self, options=-1):
        """Those of the n-th options that the library was registered in, or of all."""
        numbers = (ctypes.c_uint64 * len(FIGURES))()
        assert self.stats(options, numbers, ctypes.sizeof(numbers)) == ctypes.sizeof(numbers)
        return dict(zip(FIGURES, numbers, strict=True))


class Model:
    """A model in a session, and what it computes without a plan."""

    def __init__(self, path, chosen=None, dims=None, threads=1):
        provider = ["CPUExecutionProvider"]
        plain = ort.SessionOptions()
        plain.intra_op_num_threads = threads
        plain.enable_cpu_mem_arena = plain.enable_mem_pattern = False
        reference = ort.InferenceSession(str(path), plain, providers=provider)
        self.feed = inputs(reference, dims or {})
        self.expected = bits(reference.run(None, self.feed))
        self.session = ort.InferenceSession(str(path), chosen, providers=provider) if chosen else None

    def run(self, options=None):
        return self.session.run(None, self.feed, options)


def bits(outputs):
    return [(o.shape, o.dtype, np.ascontiguousarray(o).tobytes()) for o in outputs]
