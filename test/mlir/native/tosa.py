"""Builds a function in the tosa dialect, with reverse-mode gradients.

Values are `f32` tensors of static shape. Every operation that has derivatives leaves their rules on a tape; `gradients` reads the
tape backwards and adds the operations of the backward pass to the same function, so that one function holds a training step.
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Value:
    """An SSA value: its name with `%`, and its shape."""

    name: str
    shape: tuple

    @property
    def type(self):
        return f"tensor<{'x'.join(map(str, self.shape))}xf32>"


class Function:
    """A function under construction; a method appends one tosa operation, or the few that stand for one."""

    def __init__(self, name, comment):
        self.name = name
        self.comment = comment
        self.arguments = []
        self.constants = {}
        self.body = []
        self.tape = []

    def argument(self, name, *shape):
        self.arguments.append(Value(f"%{name}", shape))
        return self.arguments[-1]

    def constant(self, kind, values, type):
        """Name and type of a constant at the head of the function; the same constant is there once."""
        key = kind, values, type
        if key not in self.constants:
            self.constants[key] = f"%{kind}_{sum(k == kind for k, _, _ in self.constants)}"
        return self.constants[key], type

    def number(self, value, rank=1):
        """One number, as a tensor of size one in every dimension."""
        shape = (1,) * rank
        type = Value("", shape).type
        return Value(self.constant("number", f"dense<{value:.6e}> : {type}", type)[0], shape)

    def dims(self, numbers):
        """A `!tosa.shape`."""
        rank = len(numbers)
        return self.constant("dims", f"dense<{list(numbers)}> : tensor<{rank}xindex>", f"!tosa.shape<{rank}>")

    def emit(self, op, shape, operands, attributes="", extra=(), rules=()):
        """Appends `op`; `extra` are operands without values here, as (name, type). `rules` hold an operand and what makes its
        gradient of the result's gradient and the result, one pair for each operand that has one."""
        result = Value(f"%{op}_{len(self.body)}", tuple(shape))
        attributes = f" {{{attributes}}}" if attributes else ""
        given = [(v.name, v.type) for v in operands] + list(extra)
        names, types = ", ".join(name for name, _ in given), ", ".join(type for _, type in given)
        self.body.append(f"{result.name} = tosa.{op} {names}{attributes} : ({types}) -> {result.type}")
        self.tape.append((result, rules))
        return result

    # Elementwise; shapes broadcast along dimensions of size one.

    def add(self, a, b):
        return self.emit("add", broadcast(a, b), [a, b], rules=[(a, lambda g, y: g), (b, lambda g, y: g)])

    def sub(self, a, b):
        return self.emit(
            "sub", broadcast(a, b), [a, b], rules=[(a, lambda g, y: g), (b, lambda g, y: self.scale(g, -1.0))]
        )

    def mul(self, a, b):
        shift = self.constant("shift", "dense<0> : tensor<1xi8>", "tensor<1xi8>")
        rules = [(a, lambda g, y: self.mul(g, b)), (b, lambda g, y: self.mul(g, a))]
        return self.emit("mul", broadcast(a, b), [a, b], extra=[shift], rules=rules)

    def scale(self, a, factor):
        return self.mul(a, self.number(factor, len(a.shape)))

    def tanh(self, a):
        one = self.number(1.0, len(a.shape))
        return self.emit("tanh", a.shape, [a], rules=[(a, lambda g, y: self.mul(g, self.sub(one, self.mul(y, y))))])

    def exp(self, a):
        return self.emit("exp", a.shape, [a], rules=[(a, lambda g, y: self.mul(g, y))])

    def reciprocal(self, a):
        rules = [(a, lambda g, y: self.scale(self.mul(g, self.mul(y, y)), -1.0))]
        return self.emit("reciprocal", a.shape, [a], rules=rules)

    # Reductions; the dimension stays, with size one.

    def reduce_sum(self, a, axis):
        return self.emit("reduce_sum", one_at(a, axis), [a], f"axis = {axis} : i32", rules=[(a, lambda g, y: g)])

    def reduce_max(self, a, axis):
        """Without a derivative: for where the result does not depend on it."""
        return self.emit("reduce_max", one_at(a, axis), [a], f"axis = {axis} : i32")

    # Moves of elements.

    def transpose(self, a, *order):
        back = [order.index(axis) for axis in range(len(order))]
        perms = f"perms = array<i32: {', '.join(map(str, order))}>"
        shape = [a.shape[axis] for axis in order]
        return self.emit("transpose", shape, [a], perms, rules=[(a, lambda g, y: self.transpose(g, *back))])

    def reverse(self, a, axis):
        return self.emit("reverse", a.shape, [a], f"axis = {axis} : i32")

    def slice(self, a, start, shape):
        return self.emit("slice", shape, [a], extra=[self.dims(start), self.dims(shape)])

    def concat(self, a, b):
        """Along the last dimension."""
        *outer, left = a.shape
        origin = [0] * len(outer)
        rules = [
            (a, lambda g, y: self.slice(g, [*origin, 0], a.shape)),
            (b, lambda g, y: self.slice(g, [*origin, left], b.shape)),
        ]
        return self.emit("concat", [*outer, left + b.shape[-1]], [a, b], f"axis = {len(outer)} : i32", rules=rules)

    # Contractions.

    def matmul(self, a, b):
        """Of [1, m, k] and [1, k, n]."""
        rules = [
            (a, lambda g, y: self.matmul(g, self.transpose(b, 0, 2, 1))),
            (b, lambda g, y: self.matmul(self.transpose(a, 0, 2, 1), g)),
        ]
        zero = self.number(0.0)
        return self.emit("matmul", (1, a.shape[1], b.shape[2]), [a, b, zero, zero], rules=rules)

    def conv(self, image, weight):
        """Of an image [1, h, w, in] and weights [out, 3, 3, in], padded by one, of stride one. The gradients are convolutions, too:
        of the result's gradient with the weights turned about, and of the image with the result's gradient for weights."""

        def of_image(g, y):
            return self.conv(g, self.reverse(self.reverse(self.transpose(weight, 3, 1, 2, 0), 1), 2))

        def of_weight(g, y):
            turned = self.conv(self.transpose(image, 3, 1, 2, 0), self.transpose(g, 3, 1, 2, 0))
            return self.transpose(turned, 3, 1, 2, 0)

        batch, height, width, _ = image.shape
        out, kernel_height, kernel_width, _ = weight.shape
        shape = batch, height + 3 - kernel_height, width + 3 - kernel_width, out
        zero = self.number(0.0)
        attributes = (
            "acc_type = f32, dilation = array<i64: 1, 1>, pad = array<i64: 1, 1, 1, 1>, stride = array<i64: 1, 1>"
        )
        rules = [(image, of_image), (weight, of_weight)]
        return self.emit("conv2d", shape, [image, weight, zero, zero, zero], attributes, rules=rules)

    def halve(self, a):
        """Means of 2 x 2 pixels."""
        batch, height, width, channels = a.shape
        zero = self.number(0.0)
        attributes = (
            "acc_type = f32, kernel = array<i64: 2, 2>, pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 2, 2>"
        )
        rules = [(a, lambda g, y: self.scale(self.double(g), 0.25))]
        return self.emit(
            "avg_pool2d", (batch, height // 2, width // 2, channels), [a, zero, zero], attributes, rules=rules
        )

    def double(self, a):
        """Every pixel becomes 2 x 2."""
        batch, height, width, channels = a.shape
        extra = [self.dims([2, 1, 2, 1]), self.dims([0, 0]), self.dims([1, 1])]
        rules = [(a, lambda g, y: self.scale(self.halve(g), 4.0))]
        shape = batch, 2 * height, 2 * width, channels
        return self.emit("resize", shape, [a], "mode = NEAREST_NEIGHBOR", extra, rules)

    # The backward pass, and the text.

    def gradients(self, output, seed, wanted):
        """Derivatives with respect to `wanted` where that with respect to `output` is `seed`."""
        forward = list(self.tape)
        varying = set(wanted)
        for result, rules in forward:
            if any(operand in varying for operand, _ in rules):
                varying.add(result)
        found = {output: seed}
        for result, rules in reversed(forward):
            gradient = found.pop(result, None)
            if gradient is None:
                continue
            for operand, rule in rules:
                if operand in varying:
                    part = self.summed_to(rule(gradient, result), operand.shape)
                    found[operand] = self.add(found[operand], part) if operand in found else part
        return [found[value] for value in wanted]

    def summed_to(self, value, shape):
        """Sums over the dimensions along which an operand of `shape` was broadcast."""
        for axis, (have, want) in enumerate(zip(value.shape, shape)):
            if have > want:
                value = self.reduce_sum(value, axis)
        return value

    def text(self, *results):
        """The function, returning `results`."""
        arguments = ", ".join(f"{a.name}: {a.type}" for a in self.arguments)
        names, types = ", ".join(r.name for r in results), ", ".join(r.type for r in results)
        lines = [f"// {line}" for line in self.comment.splitlines()]
        lines.append(f"func.func @{self.name}({arguments}) -> ({types}) {{")
        for (kind, values, type), name in self.constants.items():
            op = "tosa.const_shape" if kind == "dims" else '"tosa.const"'
            lines.append(f"  {name} = {op} {braces(kind, values)} : () -> {type}")
        lines += [f"  {line}" for line in self.body]
        lines += [f"  return {names} : {types}", "}"]
        return "\n".join(lines) + "\n"


def braces(kind, values):
    return f"{{values = {values}}}" if kind == "dims" else f"() <{{values = {values}}}>"


def broadcast(a, b):
    return tuple(map(max, a.shape, b.shape))


def one_at(a, axis):
    return [1 if i == axis else size for i, size in enumerate(a.shape)]
