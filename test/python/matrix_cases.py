"""What the matrix is made of: models, with the budget each is rewritten for, and variants of rewriting, with what each promises."""

import dataclasses
import pathlib

import models
from need import NIGHTLY
from runtime import LEVELS, ORDERS, Settings


@dataclasses.dataclass(frozen=True)
class Case:
    """A model of the matrix."""

    name: str
    budget: str
    path: pathlib.Path | None = None
    """Where the model lies; nowhere yet if it is generated."""
    pays: bool = False
    """Recomputing is known to lower the peak by a fifth at least."""

    @property
    def is_simulated(self):
        """The simulation knows all that the model takes. Blocked layouts show when it is measured, which the program does in the
        default order only."""
        return self.name != "unet_tiny_train"


    @property
    def is_settled(self):
        """Later runs with the arena take the same in every process. Of one file of this model they take 3.4 or 7.8 MB, as the system happens to
        put the regions: the block of the memory pattern fits into what the first run left, or it does not."""
        return self.name != "light_shufflenet"


GENERATED = ("mlp_named_batch_train", "cnn_residual_infer", "control_flow", "quantized_pairs_infer", "mixer_long_skips")
"""Those that every change is tested with: dimensions by name, blocks of channels, subgraphs, fusions."""


def small_cases():
    """The models of the repository, and generated ones: for every change a few."""
    names = [build.__name__ for build in models.BUILDERS if NIGHTLY or build.__name__ in GENERATED]
    return [Case(path.stem, "70%", path) for path in models.OWN] + [Case(name, "70%", pays=True) for name in names]


def large_cases():
    """The models of the `onnx` package, and larger ones where they are present."""
    return [Case(path.stem, "auto", path) for path in models.LIGHTEST + (models.SHARED if NIGHTLY else [])]


@dataclasses.dataclass(frozen=True)
class Promise:
    """A peak that the report promises."""

    settings: Settings
    key: str
    """Key of the report that holds it, in bytes."""
    measured: str = "peak_bytes"
    """Key of the measured one."""


@dataclasses.dataclass(frozen=True)
class Variant:
    """A way to rewrite."""

    name: str
    arguments: tuple
    promises: tuple
    settings: tuple
    """Under which the model has to load and to keep its bits."""


def grid(order):
    """All levels with and without the arena, and in the other order, too."""
    both = [Settings(level, order, arena) for level in LEVELS for arena in (False, True)]
    other = next(other for other in ORDERS if other != order)
    return (*both, *(Settings(level, other, arena=False) for level in LEVELS))


BASELINE = "baseline_peak_bytes"
"""Key of the report that holds the peak of the original in its own order."""
PROMISED = "predicted_peak_bytes"
"""Key of the report that holds the promised peak without the arena."""


def reference_level(report, level):
    """The level at which the original computes the bits that the rewritten model computes at `level`: what the runtime
    fused before stays fused."""
    return "extended" if report["strategy"] in ("tiled", "fused", "laid-out") and level in ("off", "basic") else level


ANY_ORDER = Variant(
    "any-order",
    arguments=("--target", "ort"),
    promises=(
        Promise(Settings(arena=False), PROMISED),
        Promise(Settings(), "predicted_arena_bytes"),
        Promise(Settings(), "predicted_arena_steady_bytes", measured="later_peak_bytes"),
    ),
    settings=grid("default"),
)
FILE_ORDER = Variant(
    "file-order",
    arguments=("--target", "ort", "--order-hint", "priority"),
    promises=(Promise(Settings("off", "priority", arena=False), PROMISED),),
    settings=grid("priority"),
)


def matrix():
    """Pairs of a model and a variant. The strict variant is tried on small models only, for every change on two."""
    every = [(case, ANY_ORDER) for case in small_cases() + large_cases()]
    strict = [case for case in small_cases() if NIGHTLY or case.name in ("mlp_tiny_train", "control_flow")]
    return every + [(case, FILE_ORDER) for case in strict]
