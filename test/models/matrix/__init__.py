"""Models for the test matrix: small files with peaks of tens of megabytes, in all of which recomputing pays.

Each file is one way in which a model can surprise a runtime's memory planning. `BUILDERS` lists the functions that build them.
"""

from matrix import anchors, cnn, control_flow, mlp, quantized, skips, transformer
from matrix.registry import BUILDERS

__all__ = ["BUILDERS", "anchors", "cnn", "control_flow", "mlp", "quantized", "skips", "transformer"]
