"""Writes the logs in this folder: small programs in the format of the DTR paper's prototype."""

import json
import pathlib

FOLDER = pathlib.Path(__file__).parent


class Log:
    def __init__(self):
        self.lines = []
        self.names = 0
        self.add(ANNOTATION="START", INSTRUCTION="ANNOTATE")

    def add(self, **fields):
        self.lines.append(json.dumps(fields, sort_keys=True, separators=(",", ":")))

    def name(self):
        self.names += 1
        return f"x{self.names}"

    def memory(self, name, size):
        self.add(INSTRUCTION="MEMORY", MEMORY=str(size), NAME=name)

    def constant(self, size):
        name = self.name()
        self.add(INSTRUCTION="CONSTANT", NAME=name)
        self.memory(name, size)
        return name

    def call(self, op, args, sizes, time, aliases=()):
        results = [self.name() for _ in sizes]
        self.add(ARGS=args, INSTRUCTION="CALL", NAME=op, RESULT=results, TIME=str(time))
        for index, (result, size) in enumerate(zip(results, sizes)):
            self.memory(result, size)
            self.add(ALIAS=str(dict(aliases).get(index, -1)), INSTRUCTION="ALIAS", NAME=result)
        return results

    def mutate(self, op, args, indices, time):
        self.add(ARGS=args, INSTRUCTION="MUTATE", MUTATE=indices, NAME=op, TIME=str(time))

    def copy(self, source):
        name = self.name()
        self.add(DST=name, INSTRUCTION="COPY", SRC=source)
        return name

    def copy_from(self, target, source):
        self.add(DST=target, INSTRUCTION="COPY_FROM", SRC=source)

    def release(self, *names):
        for name in names:
            self.add(INSTRUCTION="RELEASE", NAME=name)

    def write(self, name):
        (FOLDER / name).write_text("\n".join(self.lines) + "\n")


def training_step(layers):
    """A multilayer perceptron: forward, loss, backward; views, changes in place, names that are copied."""
    log = Log()
    weights = [log.constant(400) for _ in range(layers)]
    value = log.constant(1000)
    saved = []
    for weight in weights:
        (transposed,) = log.call("t", [weight], [400], 5, aliases=[(0, 0)])
        (product,) = log.call("mm", [value, transposed], [1000], 900)
        log.release(transposed)
        log.mutate("add_", [product, weight], [0], 60)
        (active, mask) = log.call("relu", [product], [1000, 250], 80)
        saved.append((weight, value, product, mask))
        value = log.copy(active)
        log.release(active)
    (gradient,) = log.call("loss", [value], [1000], 70)
    log.add(ANNOTATION="BACKWARD", INSTRUCTION="ANNOTATE")
    log.release(value)
    total = log.constant(400)
    for weight, value, product, mask in reversed(saved):
        (inner,) = log.call("relu_backward", [gradient, mask], [1000], 90)
        (flat,) = log.call("view", [value], [1000], 3, aliases=[(0, 0)])
        (update,) = log.call("mm", [flat, inner], [400], 850)
        log.copy_from(total, update)
        (outer,) = log.call("mm", [inner, weight], [1000], 880)
        log.release(gradient, mask, product, flat, inner, value, "never_defined")
        gradient = outer
    return log


if __name__ == "__main__":
    training_step(6).write("training_step.log")
