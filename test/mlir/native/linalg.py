"""Functions over tensors in `linalg`, written operation by operation. Images are batch x rows x columns x channels."""


class Function:
    def __init__(self, name, comment):
        self.name = name
        self.comment = comment
        self.arguments = []
        self.lines = ["%zero = arith.constant 0.0 : f32", "%least = arith.constant -3.0e38 : f32", "%six = arith.constant 6.0 : f32"]
        self.shapes = {}

    def argument(self, name, *shape):
        self.arguments.append(f"%{name}: {kind(shape)}")
        return self.known(f"%{name}", shape)

    def known(self, value, shape):
        self.shapes[value] = shape
        return value

    def made(self, shape, text):
        value = f"%{len(self.lines)}"
        self.lines.append(f"{value} = {text}")
        return self.known(value, shape)

    def filled(self, shape, number="%zero"):
        empty = self.made(shape, f"tensor.empty() : {kind(shape)}")
        return self.made(shape, f"linalg.fill ins({number} : f32) outs({empty} : {kind(shape)}) -> {kind(shape)}")

    def windows(self, op, image, window, out_channels, stride=1, start="%zero"):
        """A named operation that moves a window over an image."""
        (batch, rows, columns, _), (height, width, *_) = self.shapes[image], self.shapes[window]
        shape = (batch, (rows - height) // stride + 1, (columns - width) // stride + 1, out_channels)
        into = self.filled(shape, start)
        attributes = f"{{dilations = dense<1> : tensor<2xi64>, strides = dense<{stride}> : tensor<2xi64>}}"
        types = f"{kind(self.shapes[image])}, {kind(self.shapes[window])}"
        ins = f"ins({image}, {window} : {types}) outs({into} : {kind(shape)})"
        return self.made(shape, f"linalg.{op} {attributes} {ins} -> {kind(shape)}")

    def conv(self, image, weight, stride=1):
        return self.windows("conv_2d_nhwc_hwcf", image, weight, self.shapes[weight][-1], stride)

    def depthwise(self, image, weight, stride=1):
        return self.windows("depthwise_conv_2d_nhwc_hwc", image, weight, self.shapes[weight][-1], stride)

    def max_pool(self, image, size=2):
        window = self.made((size, size), f"tensor.empty() : {kind((size, size))}")
        return self.windows("pooling_nhwc_max", image, window, self.shapes[image][-1], size, "%least")

    def pad(self, image, amount=1):
        batch, rows, columns, channels = self.shapes[image]
        shape = (batch, rows + 2 * amount, columns + 2 * amount, channels)
        edges = f"low[0, {amount}, {amount}, 0] high[0, {amount}, {amount}, 0]"
        body = "{ ^bb0(%a: index, %b: index, %c: index, %d: index): tensor.yield %zero : f32 }"
        return self.made(shape, f"tensor.pad {image} {edges} {body} : {kind(self.shapes[image])} to {kind(shape)}")

    def elementwise(self, values, body):
        """A generic operation without reductions; the body reads `%a`, `%b` and yields `%y`."""
        shape = self.shapes[values[0]]
        axes = ", ".join(f"d{axis}" for axis in range(len(shape)))
        maps = ", ".join([f"affine_map<({axes}) -> ({axes})>"] * (len(values) + 1))
        loops = ", ".join(['"parallel"'] * len(shape))
        into = self.made(shape, f"tensor.empty() : {kind(shape)}")
        given = ", ".join(f"%{name}: f32" for name in [*"abc"[: len(values)], "into"])
        types = ", ".join([kind(shape)] * len(values))
        head = f"linalg.generic {{indexing_maps = [{maps}], iterator_types = [{loops}]}}"
        ins = f"ins({', '.join(values)} : {types}) outs({into} : {kind(shape)})"
        return self.made(shape, f"{head} {ins} {{ ^bb0({given}): {body} linalg.yield %y : f32 }} -> {kind(shape)}")

    def relu6(self, value):
        return self.elementwise(
            [value], "%m = arith.maximumf %a, %zero : f32 %y = arith.minimumf %m, %six : f32"
        )

    def add(self, one, other):
        return self.elementwise([one, other], "%y = arith.addf %a, %b : f32")

    def matmul(self, one, other):
        shape = (self.shapes[one][0], self.shapes[other][1])
        into = self.filled(shape)
        types = f"{kind(self.shapes[one])}, {kind(self.shapes[other])}"
        return self.made(
            shape, f"linalg.matmul ins({one}, {other} : {types}) outs({into} : {kind(shape)}) -> {kind(shape)}"
        )

    def text(self, result):
        ty = kind(self.shapes[result])
        body = "\n".join(f"  {line}" for line in [*self.lines, f"return {result} : {ty}"])
        return f"// {self.comment}\nfunc.func @{self.name}({', '.join(self.arguments)}) -> {ty} {{\n{body}\n}}\n"


def kind(shape):
    return f"tensor<{'x'.join(map(str, shape))}xf32>"
