"""One training step of a small Transformer, written out as exporters of PyTorch do.

The pieces that a runtime likes to fuse are there in the form it looks for (gelu forward), and in one that it must leave alone
because the backward pass reads what lies between (softmax, layer norm). The causal mask is a small constant that an Expand
makes large: a node that needs no input and can run at any time.
"""

import numpy as np
from network import Network

from matrix.registry import model
from matrix.skips import gelu, layer_norm

BATCH, TOKENS, HEADS, DEPTH = 2, 256, 4, 16
WIDTH = HEADS * DEPTH
ROWS = BATCH * TOKENS
SCORES = [BATCH, HEADS, TOKENS, TOKENS]


class Transformer(Network):
    """Forward and backward pieces; activations outside of attention are matrices of `ROWS` rows.

    A backward piece takes the gradient of what its forward counterpart returned, and returns the gradient of what that read.
    """

    def __init__(self, name):
        super().__init__(name)
        numbers = {"scale": DEPTH**-0.5, "never": -1e9, "two": 2, "epsilon": 1e-5, "1/root2": 0.5**0.5, "-half": -0.5}
        for constant, number in (numbers | {"density": (2 * np.pi) ** -0.5}).items():
            self.constant(constant, np.array(number, np.float32))
        shapes = {"scores": SCORES, "heads": [BATCH, TOKENS, HEADS, DEPTH], "rows": [ROWS, WIDTH]}
        for constant, shape in shapes.items():
            self.constant(f"shape.{constant}", np.array(shape))
        self.constant("first axis", np.array([0]))
        self.constant("future", np.triu(np.ones((TOKENS, TOKENS), bool), 1)[None, None])

    def gradient_sum(self, value, name, width):
        """The gradient of a vector that was added to, or multiplied with, every row."""
        self.output(self.op("ReduceSum", [value, "first axis"], name, keepdims=0), [width])

    def linear(self, x, name, c_in, c_out):
        w, b = self.input(f"{name}.w", [c_in, c_out]), self.input(f"{name}.b", [c_out])
        return self.op("Gemm", [x, w, b], name)

    def linear_backward(self, dy, name, x, c_in, c_out):
        self.output(self.op("Gemm", [x, dy], f"{name}.dw", transA=1), [c_in, c_out])
        self.gradient_sum(dy, f"{name}.db", c_out)
        return self.op("Gemm", [dy, f"{name}.w"], f"{name}.dx", transB=1)

    def norm_backward(self, dy, name):
        hat = f"{name}.hat"
        self.gradient_sum(self.op("Mul", [dy, hat], f"{name}.dgains"), f"{name}.dgain", WIDTH)
        self.gradient_sum(dy, f"{name}.dbias", WIDTH)
        dhat = self.op("Mul", [dy, f"{name}.gain"], f"{name}.dhat")
        self.op("ReduceMean", [dhat], f"{name}.dhat.mean", axes=[-1])
        self.op("Mul", [dhat, hat], f"{name}.dhat.hat")
        self.op("ReduceMean", [f"{name}.dhat.hat"], f"{name}.dhat.along", axes=[-1])
        self.op("Mul", [hat, f"{name}.dhat.along"], f"{name}.along")
        self.op("Sub", [dhat, f"{name}.dhat.mean"], f"{name}.dhat.centred")
        self.op("Sub", [f"{name}.dhat.centred", f"{name}.along"], f"{name}.across")
        return self.op("Div", [f"{name}.across", f"{name}.deviation"], f"{name}.dx")

    def heads(self, x, name, perm):
        """From rows to one matrix for each head."""
        self.op("Reshape", [x, "shape.heads"], f"{name}.split")
        return self.op("Transpose", [f"{name}.split"], f"{name}.heads", perm=perm)

    def rows(self, x, name):
        """From one matrix for each head to rows."""
        self.op("Transpose", [x], f"{name}.merged", perm=[0, 2, 1, 3])
        return self.op("Reshape", [f"{name}.merged", "shape.rows"], f"{name}.rows")

    def attention(self, x, name):
        by_token, by_depth = [0, 2, 1, 3], [0, 2, 3, 1]
        for part, perm in (("q", by_token), ("k", by_depth), ("v", by_token)):
            self.heads(self.linear(x, f"{name}.{part}", WIDTH, WIDTH), f"{name}.{part}", perm)
        self.op("MatMul", [f"{name}.q.heads", f"{name}.k.heads"], f"{name}.products")
        self.op("Mul", [f"{name}.products", "scale"], f"{name}.scores")
        self.op("Expand", ["future", "shape.scores"], f"{name}.mask")
        self.op("Where", [f"{name}.mask", "never", f"{name}.scores"], f"{name}.masked")
        self.op("Softmax", [f"{name}.masked"], f"{name}.p", axis=-1)
        self.op("MatMul", [f"{name}.p", f"{name}.v.heads"], f"{name}.mixed")
        return self.linear(self.rows(f"{name}.mixed", f"{name}.mixed"), f"{name}.out", WIDTH, WIDTH)

    def attention_backward(self, dy, name, x):
        """The mask needs nothing: where it is set, the probability is zero."""
        dmixed = self.linear_backward(dy, f"{name}.out", f"{name}.mixed.rows", WIDTH, WIDTH)
        self.heads(dmixed, f"{name}.dmixed", [0, 2, 1, 3])
        turned = lambda value, perm: self.op("Transpose", [value], f"{value}.turned", perm=perm)
        last_two = [0, 1, 3, 2]
        self.op("MatMul", [turned(f"{name}.p", last_two), f"{name}.dmixed.heads"], f"{name}.v.d")
        self.op("MatMul", [f"{name}.dmixed.heads", turned(f"{name}.v.heads", last_two)], f"{name}.p.d")
        self.op("Mul", [f"{name}.p", f"{name}.p.d"], f"{name}.p.pd")
        self.op("ReduceSum", [f"{name}.p.pd", self.constant("last axis", np.array([-1]))], f"{name}.p.sum")
        self.op("Mul", [f"{name}.p", f"{name}.p.sum"], f"{name}.p.psum")
        self.op("Sub", [f"{name}.p.pd", f"{name}.p.psum"], f"{name}.scores.d")
        self.op("Mul", [f"{name}.scores.d", "scale"], f"{name}.products.d")
        self.op("MatMul", [f"{name}.products.d", turned(f"{name}.k.heads", last_two)], f"{name}.q.d")
        self.op("MatMul", [turned(f"{name}.products.d", last_two), f"{name}.q.heads"], f"{name}.k.d")
        parts = [f"{name}.{part}" for part in ("q", "k", "v")]
        gradients = [self.linear_backward(self.rows(f"{p}.d", f"{p}.d"), p, x, WIDTH, WIDTH) for p in parts]
        return self.op("Sum", gradients, f"{name}.dx")

    def gelu_backward(self, dy, name, z):
        self.op("Mul", [z, "1/root2"], f"{name}.b.z")
        self.op("Erf", [f"{name}.b.z"], f"{name}.b.erf")
        self.op("Add", [f"{name}.b.erf", "one"], f"{name}.b.1+erf")
        self.op("Mul", [f"{name}.b.1+erf", "half"], f"{name}.b.normal")
        self.op("Mul", [z, z], f"{name}.b.z2")
        self.op("Mul", [f"{name}.b.z2", "-half"], f"{name}.b.-z2/2")
        self.op("Exp", [f"{name}.b.-z2/2"], f"{name}.b.exp")
        self.op("Mul", [f"{name}.b.exp", "density"], f"{name}.b.density")
        self.op("Mul", [z, f"{name}.b.density"], f"{name}.b.zdensity")
        self.op("Add", [f"{name}.b.normal", f"{name}.b.zdensity"], f"{name}.b.slope")
        return self.op("Mul", [dy, f"{name}.b.slope"], f"{name}.b.dz")

    def block(self, x, name):
        mixed = self.attention(layer_norm(self, x, f"{name}.norm1", WIDTH), f"{name}.attention")
        middle = self.op("Add", [x, mixed], f"{name}.middle")
        z = self.linear(layer_norm(self, middle, f"{name}.norm2", WIDTH), f"{name}.wide", WIDTH, 4 * WIDTH)
        y = self.linear(gelu(self, z, f"{name}.gelu"), f"{name}.narrow", 4 * WIDTH, WIDTH)
        return self.op("Add", [middle, y], f"{name}.y")

    def block_backward(self, dy, name):
        dgelu = self.linear_backward(dy, f"{name}.narrow", f"{name}.gelu", 4 * WIDTH, WIDTH)
        dz = self.gelu_backward(dgelu, f"{name}.gelu", f"{name}.wide")
        dnorm = self.linear_backward(dz, f"{name}.wide", f"{name}.norm2", WIDTH, 4 * WIDTH)
        dmiddle = self.op("Add", [dy, self.norm_backward(dnorm, f"{name}.norm2")], f"{name}.dmiddle")
        dnorm = self.attention_backward(dmiddle, f"{name}.attention", f"{name}.norm1")
        return self.op("Add", [dmiddle, self.norm_backward(dnorm, f"{name}.norm1")], f"{name}.dx")


@model
def transformer_train(blocks=4):
    """The loss is the mean square of what the last block returns."""
    step = Transformer("transformer_train")
    y = step.input("tokens", [ROWS, WIDTH])
    names = [f"block{i}" for i in range(blocks)]
    for name in names:
        y = step.block(y, name)
    step.op("Mul", [y, y], "squares")
    step.op("ReduceMean", ["squares"], "loss", keepdims=0)
    step.output("loss", [])
    dy = step.op("Mul", [y, "two"], "dloss")
    for name in reversed(names):
        dy = step.block_backward(dy, name)
    step.output(dy, [ROWS, WIDTH])
    return step
