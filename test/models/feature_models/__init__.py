"""For each feature of ONNX that touches rewriting, one small model that has it.

All models have one form: a large result is made early (the feature stands here, or reads it at the end), a short stretch takes much
memory, and then the early result is needed again. A budget that fits the stretch alone, but not beside the early result, makes every
plan recompute the early one. `FEATURES` lists the functions that build them, each with the shape of the input `x`.
"""

from feature_models import (
    control_flow,
    element_types,
    functions,
    node_forms,
    quantized,
    random_draws,
    sequences,
    several_results,
    signature,
    sizes_and_weights,
    views,
)
from feature_models.feature import FEATURES, Feature

__all__ = [
    "FEATURES",
    "Feature",
    "control_flow",
    "element_types",
    "functions",
    "node_forms",
    "quantized",
    "random_draws",
    "sequences",
    "several_results",
    "signature",
    "sizes_and_weights",
    "views",
]
