"""Training of PyTorch models within a number of bytes.

    import remat_opt.torch

    model = torch.compile(model, backend=remat_opt.torch.backend("2GiB"))

The joint graph of forward and backward becomes a rematerialization problem, with time and workspace of every op
measured on this machine; the plan becomes the two graphs that run. `reports()` says what is promised, what was
measured, and what fell back and why.
"""

from ._backend import Backend, backend
from ._capture import capture
from ._checkpoint import checkpoint, checkpoint_report
from ._effects import UnsupportedGraph
from ._gpu.estimate import Estimate, estimate, largest_batch
from ._gpu.fit import Fit, fit_entry, fit_script
from ._gpu.snapshot import Replay, replay
from ._inductor import inductor_problem
from ._offload import Offload
from ._partition import Partitioner, partitioner
from ._report import Report, clear_reports, reports
from ._step import TrainStep
from ._tags import reorder, tag

__all__ = [
    "Backend",
    "Estimate",
    "Fit",
    "Offload",
    "Partitioner",
    "Replay",
    "Report",
    "TrainStep",
    "UnsupportedGraph",
    "backend",
    "capture",
    "checkpoint",
    "checkpoint_report",
    "clear_reports",
    "estimate",
    "fit_entry",
    "fit_script",
    "inductor_problem",
    "largest_batch",
    "partitioner",
    "reorder",
    "replay",
    "reports",
    "tag",
]
