"""Random functions on `linalg`: destinations that are shared empty tensors, arguments or values, or an empty tensor for each result; slices,
loops and branches among them. Printed is one:

    python test/mlir/native/destinations.py SEED
"""

import random
import sys

ROWS, COLUMNS = 512, 512
WHOLE, HALF = f"tensor<{ROWS}x{COLUMNS}xf32>", f"tensor<{ROWS // 2}x{COLUMNS}xf32>"
UNARY, BINARY = ["exp", "tanh", "abs"], ["add", "sub", "mul"]


class Writer:
    """A function, operation by operation. `styles` are the kinds of destinations."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.in_place = seed % 3 != 0
        """Otherwise each result has a destination of its own: value semantics."""
        self.lines, self.count = [], 0
        self.values = ["%x", "%y"]
        self.shared = [self.made("tensor.empty() : " + WHOLE) for _ in range(2)] if self.in_place else []

    def made(self, text):
        self.count += 1
        self.lines.append(f"%{self.count} = {text}")
        return f"%{self.count}"

    def value(self):
        """Late ones more often: chains, with readers far behind."""
        return self.values[-1 - min(int(self.random.expovariate(0.5)), len(self.values) - 1)]

    def destination(self, kind=WHOLE):
        choice = self.random.random()
        if kind == WHOLE and self.in_place and choice < 0.5:
            return self.random.choice(self.shared)
        if kind == WHOLE and self.in_place and choice < 0.8:
            return self.value()
        return self.made(f"tensor.empty() : {kind}")

    def computed(self, read, kind=WHOLE, into=None):
        """One operation on values of this type; its result stays bounded."""
        into = into or self.destination(kind)
        if len(read) == 1:
            name = self.random.choice(UNARY if self.random.random() < 0.3 else ["tanh", "abs"])
        else:
            name = self.random.choice(BINARY)
        types = ", ".join([kind] * len(read))
        return self.made(f"linalg.{name} ins({', '.join(read)} : {types}) outs({into} : {kind}) -> {kind}")

    def operation(self):
        read = [self.value() for _ in range(self.random.choice([1, 1, 2]))]
        self.values.append(self.computed(read))

    def slices(self):
        """The upper half of one value goes into another one."""
        begin, size = f"[{self.random.choice([0, ROWS // 2])}, 0]", f"[{ROWS // 2}, {COLUMNS}] [1, 1]"
        part = self.made(f"tensor.extract_slice {self.value()}{begin} {size} : {WHOLE} to {HALF}")
        part = self.computed([part], HALF)
        whole = self.value()
        self.values.append(self.made(f"tensor.insert_slice {part} into {whole}{begin} {size} : {HALF} into {WHOLE}"))

    def loop(self):
        """What it carries is written in place."""
        start, other = self.value(), self.value()
        self.count += 1
        result = f"%{self.count}"
        self.lines.append(f"{result} = scf.for %i{self.count} = %c0 to %c3 step %c1 iter_args(%carried{self.count} = {start}) -> ({WHOLE}) {{")
        carried = f"%carried{self.count}"
        inside = self.computed([carried, other], into=carried)
        self.lines += [f"scf.yield {inside} : {WHOLE}", "}"]
        self.values.append(result)

    def branch(self):
        self.count += 1
        result = f"%{self.count}"
        one, other = self.value(), self.value()
        self.lines.append(f"{result} = scf.if %yes -> ({WHOLE}) {{")
        for index in range(2):
            inside = self.computed([one, other][: 1 + index], into=self.made(f"tensor.empty() : {WHOLE}"))
            self.lines += [f"scf.yield {inside} : {WHOLE}", "} else {" if index == 0 else "}"]
        self.values.append(result)

    def text(self):
        for _ in range(self.random.randint(5, 14)):
            self.random.choices([self.operation, self.slices, self.loop, self.branch], [12, 2, 1, 1])[0]()
        self.values.append(self.computed([self.values[-1]], into=self.made(f"tensor.empty() : {WHOLE}")))
        constants = [f"%c{number} = arith.constant {number} : index" for number in (0, 1, 3)] + ["%yes = arith.constant true"]
        body = "\n".join(f"  {line}" for line in [*constants, *self.lines, f"return {self.values[-1]} : {WHOLE}"])
        return f"func.func @random(%x: {WHOLE}, %y: {WHOLE}) -> {WHOLE} {{\n{body}\n}}\n"


def function(seed):
    """The text of a function; the same for the same seed."""
    return Writer(seed).text()


if __name__ == "__main__":
    print(function(int(sys.argv[1])), end="")
