#!/usr/bin/env python3
"""The operators that `onnx` and ONNX Runtime know, each with the most operands and results that any of its versions takes.

    third_party/venv/bin/python schemas.py > schemas.tsv      (onnx 1.23.2, ONNX Runtime 1.31.1)
"""
import onnx
from onnxruntime.capi.onnxruntime_pybind11_state import get_all_operator_schema

most = {}
for schema in [*onnx.defs.get_all_schemas_with_history(), *get_all_operator_schema()]:
    operands, results = most.get((schema.domain, schema.name), (0, 0))
    most[schema.domain, schema.name] = max(operands, schema.max_input), max(results, schema.max_output)
for (domain, name), counts in sorted(most.items()):
    print(domain or "ai.onnx", name, *counts, sep="\t")
