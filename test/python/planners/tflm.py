"""TensorFlow Lite Micro's own planner: the interpreter of the package `tflite-micro` plans a model whose tensors live as long as buffers do."""

from __future__ import annotations

import importlib.util
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy

from .buffers import Buffer, load

SCHEMA = "tflite_micro.tensorflow.lite.micro.python.schema_py_generated"
HEAD = re.compile(r"Arena allocation head (\d+) bytes")
LOADS = "import sys; from tflite_micro import runtime as r; i = r.Interpreter.from_file(sys.argv[1], arena_size=int(sys.argv[2])); i.print_allocations()"


def missing() -> str | None:
    return None if importlib.util.find_spec("tflite_micro") else "the package `tflite-micro` is not installed"


class Model:
    """A model of one subgraph, op by op."""

    def __init__(self):
        self.schema = importlib.import_module(SCHEMA)
        self.model, self.graph = self.schema.ModelT(), self.schema.SubGraphT()
        self.model.version, self.model.subgraphs, self.model.operatorCodes = 3, [self.graph], []
        self.model.buffers = [self.schema.BufferT()]
        self.graph.tensors, self.graph.operators, self.graph.inputs, self.graph.outputs = [], [], [], []
        self.codes: dict[str, int] = {}

    def tensor(self, kind: str, shape: list[int], data: bytes = b"") -> int:
        tensor = self.schema.TensorT()
        tensor.name, tensor.shape, tensor.type = f"t{len(self.graph.tensors)}".encode(), shape, getattr(self.schema.TensorType, kind)
        tensor.buffer = 0
        if data:
            buffer = self.schema.BufferT()
            buffer.data, tensor.buffer = numpy.frombuffer(data, numpy.uint8), len(self.model.buffers)
            self.model.buffers.append(buffer)
        self.graph.tensors.append(tensor)
        return len(self.graph.tensors) - 1

    def op(self, name: str, inputs: list[int], outputs: list[int], options: object = None) -> None:
        number = getattr(self.schema.BuiltinOperator, name)
        if name not in self.codes:
            code = self.schema.OperatorCodeT()
            code.builtinCode, code.deprecatedBuiltinCode, code.version = number, min(number, 127), 1
            self.codes[name] = len(self.model.operatorCodes)
            self.model.operatorCodes.append(code)
        op = self.schema.OperatorT()
        op.opcodeIndex, op.inputs, op.outputs = self.codes[name], inputs, outputs
        if options is not None:
            op.builtinOptionsType = getattr(self.schema.BuiltinOptions, type(options).__name__[:-1])
            op.builtinOptions = options
        self.graph.operators.append(op)

    def packed(self) -> bytes:
        import flatbuffers

        builder = flatbuffers.Builder(1 << 20)
        builder.Finish(self.model.Pack(builder), b"TFL3")
        return bytes(builder.Output())


def model(buffers: list[Buffer]) -> tuple[bytes, list[Buffer]]:
    """A model whose tensors are these buffers: `FILL` makes one where it begins, `SHAPE` reads it where it ends. And the buffers of this model: the results
    of `SHAPE`, of 4 bytes, are among them."""
    made, number, steps = Model(), {}, []
    events = [(b.end, 0, at) for at, b in enumerate(buffers)] + [(b.begin, 1, at) for at, b in enumerate(buffers)]
    value = made.tensor("INT8", [], b"\x01")
    for step, (_, begins, at) in enumerate(sorted(events), 1):
        if begins:
            number[at] = len(steps)
            extent = made.tensor("INT32", [1], buffers[at].size.to_bytes(4, "little"))
            tensor = made.tensor("INT8", [buffers[at].size])
            made.op("FILL", [extent, value], [tensor], made.schema.FillOptionsT())
            steps.append([buffers[at].size, step, step + 1, tensor])
        else:
            result = made.tensor("INT32", [1])
            made.op("SHAPE", [steps[number[at]][3]], [result], made.schema.ShapeOptionsT())
            steps[number[at]][2] = step + 1
            steps.append([16, step, step + 1, result])
            made.graph.outputs = [result]
    steps.sort(key=lambda step: step[3])
    return made.packed(), [Buffer(size, begin, end) for size, begin, end, _ in steps]


def head(content: bytes, arena: int) -> int:
    """Bytes of the arena for tensors, as the interpreter reports them."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "model.tflite")
        path.write_bytes(content)
        run = subprocess.run([sys.executable, "-c", LOADS, path, str(arena)], capture_output=True, text=True)
    found = HEAD.search(run.stdout + run.stderr)
    assert found, run.stderr[-2000:]
    return int(found.group(1))


def height(buffers: list[Buffer]) -> int:
    """The height at which the interpreter places buffers, and the small results that come with them."""
    content, all_of_them = model(buffers)
    return head(content, min(3 * load(all_of_them) + (8 << 20), (1 << 31) - 1))
