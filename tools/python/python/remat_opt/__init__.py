"""Makes neural networks fit into less memory.

    import remat_opt

    result = remat_opt.optimize("model.onnx", budget="70%")
    session = result.session()      # an onnxruntime.InferenceSession, set up for the written model
    print(result)                   # what it gains and costs

Intermediate results that are expensive to keep and cheap to make again are dropped and computed again. Outputs stay
the same, bit for bit; peaks are predicted, then measured in
ONNX Runtime; every plan is replayed by an independent checker.

- Models: `optimize`, `inspect`, `verify`, `sweep`, `max_batch`; many at once: `sweep_many`.
- What exporters write, a folder of models: `optimize_folder`.
- A file that was written earlier: `session`, `session_options`; what it requests of a GPU: `record_requests`.
- Graphs, for research: `Problem` and `solve`; buffers in one block: `place`.
- Everything that goes wrong is a `RematError`.

What a call returns holds the object that the command line prints with `--format json`; `remat-opt explain FORM` prints the schema of each.
A call takes turns with other calls of its process, releases the
interpreter's lock, and ends within a second of Ctrl-C. Sizes are in bytes; times of calls in seconds; durations of
models in nanoseconds, of graphs in the unit of the graph.
"""

from . import _environment as _environment
from ._components import Component, Components, optimize_folder
from ._counts import SessionMemory
from ._many import Job, Jobs, sweep_many
from ._models import inspect, max_batch, sweep, verify
from ._native import VERSION as __version__
from ._optimize import Result, optimize
from ._placement import Placement, place
from ._plan import Plan
from ._problem import Problem, solve
from ._progress import Progress
from ._report import Report
from ._session import arena_library, record_requests, session, session_options
from .errors import (
    InfeasibleError,
    InternalError,
    LimitError,
    ModelError,
    RematError,
    UsageError,
    VerificationError,
)

__all__ = [
    "Component",
    "Components",
    "InfeasibleError",
    "InternalError",
    "Job",
    "Jobs",
    "LimitError",
    "ModelError",
    "Placement",
    "Plan",
    "Problem",
    "Progress",
    "RematError",
    "Report",
    "Result",
    "SessionMemory",
    "UsageError",
    "VerificationError",
    "__version__",
    "arena_library",
    "inspect",
    "max_batch",
    "optimize",
    "optimize_folder",
    "place",
    "record_requests",
    "session",
    "session_options",
    "solve",
    "sweep",
    "sweep_many",
    "verify",
]
