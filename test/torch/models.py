"""Small training models: `make(name)` gives a module and its inputs; the module called with them gives the loss.

Sizes are chosen so that a step takes some ten megabytes and a fraction of a second on one core.
"""

import torch
import torch.nn.functional as F
from torch import nn

SEARCH = {"step_limit": 30_000, "threads": 1, "time_limit": 600.0}
"""How plans are searched for: the same work on every machine, whatever else runs there."""


class Attention(nn.Module):
    """Multi-head attention, written out or as PyTorch's own op."""

    def __init__(self, width, heads, kind="written", mask=False):
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.heads, self.kind, self.mask = heads, kind, mask

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        if self.kind == "fused":
            y = F.scaled_dot_product_attention(q, k, v, is_causal=self.mask)
        else:
            scores = q @ k.transpose(-1, -2) * (width // self.heads) ** -0.5
            y = torch.softmax(scores, -1) @ v
        return self.out(y.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    """A transformer block, normalized before or after."""

    def __init__(self, width, heads, kind="written", mask=False, dropout=0.0, after=False):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, kind, mask)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.dropout, self.after = dropout, after

    def forward(self, x):
        if self.after:
            x = self.norm1(x + F.dropout(self.attention(x), self.dropout, self.training))
            return self.norm2(x + F.dropout(self.mlp(x), self.dropout, self.training))
        x = x + F.dropout(self.attention(self.norm1(x)), self.dropout, self.training)
        return x + F.dropout(self.mlp(self.norm2(x)), self.dropout, self.training)


class ViT(nn.Module):
    def __init__(self, width=192, depth=4, heads=6, patch=8, image=64, classes=100):
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.position = nn.Parameter(torch.zeros(1, (image // patch) ** 2, width))
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(depth))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, images, labels):
        x = self.patches(images).flatten(2).transpose(1, 2) + self.position
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(self.norm(x).mean(1)), labels)


class Language(nn.Module):
    """GPT (causal), with experts where their number is given, or BERT (normalized after, some tokens masked)."""

    def __init__(self, width=256, depth=4, heads=8, length=128, vocabulary=2048, dropout=0.0, bert=False, experts=0):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.position = nn.Parameter(torch.zeros(1, length, width))
        kind = "written" if bert else "fused"
        self.blocks = nn.ModuleList(Block(width, heads, kind, not bert, dropout, bert) for _ in range(depth))
        for block in self.blocks if experts else ():
            block.mlp = Experts(width, experts)
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        self.is_bert = bert

    def forward(self, tokens, labels):
        x = self.embedding(tokens) + self.position
        x = self.norm(x) if self.is_bert else x
        for block in self.blocks:
            x = block(x)
        logits = self.head(x if self.is_bert else self.norm(x))
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-100)


class Experts(nn.Module):
    """Several perceptrons, of which each token weighs two (a mixture of experts). All of them run on all tokens, so
    that shapes do not depend on values."""

    def __init__(self, width, experts):
        super().__init__()
        self.gate = nn.Linear(width, experts, bias=False)
        self.wide = nn.Parameter(torch.randn(experts, width, 2 * width) * width**-0.5)
        self.narrow = nn.Parameter(torch.randn(experts, 2 * width, width) * (2 * width) ** -0.5)

    def forward(self, x):
        tokens = x.flatten(0, 1)
        best, chosen = torch.softmax(self.gate(tokens), -1).topk(2, -1)
        shares = best / best.sum(-1, keepdim=True)
        weights = torch.zeros_like(tokens[:, : self.wide.shape[0]]).scatter(1, chosen, shares)
        each = F.gelu(tokens @ self.wide) @ self.narrow
        return (weights.t().unsqueeze(-1) * each).sum(0).view(x.shape)


class BasicBlock(nn.Module):
    def __init__(self, inside, outside, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(outside), nn.BatchNorm2d(outside)
        self.down = None
        if stride != 1 or inside != outside:
            self.down = nn.Sequential(nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside))

    def forward(self, x):
        y = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)))))
        return F.relu(y + (x if self.down is None else self.down(x)))


class ResNet(nn.Module):
    """ResNet-18."""

    def __init__(self, width=64, classes=100):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU())
        widths, blocks = [width, 2 * width, 4 * width, 8 * width], []
        for stage, outside in enumerate(widths):
            inside = widths[max(0, stage - 1)]
            blocks += [BasicBlock(inside, outside, 1 if stage == 0 else 2), BasicBlock(outside, outside, 1)]
        self.blocks, self.head = nn.ModuleList(blocks), nn.Linear(widths[-1], classes)

    def forward(self, images, labels):
        x = F.max_pool2d(self.stem(images), 3, 2, 1)
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(x.mean((2, 3))), labels)


class ConvNeXtBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.depthwise, self.norm = nn.Conv2d(width, width, 7, 1, 3, groups=width), nn.LayerNorm(width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.scale = nn.Parameter(torch.full((width,), 0.1))

    def forward(self, x):
        y = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        y = self.scale * self.narrow(F.gelu(self.wide(y)))
        return x + y.permute(0, 3, 1, 2)


class ConvNeXt(nn.Module):
    def __init__(self, width=48, classes=100):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 4, 4)
        self.blocks = nn.ModuleList(
            [*(ConvNeXtBlock(width) for _ in range(2)), nn.Conv2d(width, 2 * width, 2, 2)]
            + [ConvNeXtBlock(2 * width) for _ in range(3)]
        )
        self.head = nn.Linear(2 * width, classes)

    def forward(self, images, labels):
        x = self.stem(images)
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(x.mean((2, 3))), labels)


class DoubleConv(nn.Module):
    def __init__(self, inside, outside):
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, 1, 1, bias=False)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(outside), nn.BatchNorm2d(outside)

    def forward(self, x):
        return F.relu(self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x))))))


class UNet(nn.Module):
    def __init__(self, width=24, depth=3, classes=4):
        super().__init__()
        widths = [width << level for level in range(depth + 1)]
        self.down = nn.ModuleList(DoubleConv(i, o) for i, o in zip([3, *widths], widths))
        levels = list(reversed(range(depth)))
        self.up = nn.ModuleList(nn.ConvTranspose2d(widths[i + 1], widths[i], 2, 2) for i in levels)
        self.decode = nn.ModuleList(DoubleConv(2 * widths[i], widths[i]) for i in levels)
        self.out = nn.Conv2d(width, classes, 1)

    def forward(self, images, labels):
        x, skipped = images, []
        for level, down in enumerate(self.down):
            x = down(x if level == 0 else F.max_pool2d(x, 2))
            skipped.append(x)
        skipped.pop()
        for up, decode in zip(self.up, self.decode):
            x = decode(torch.cat([up(x), skipped.pop()], 1))
        return F.cross_entropy(self.out(x), labels)


class Chain(nn.Module):
    """Layers whose activations are much larger than their parameters."""

    def __init__(self, depth=6, width=32):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))

    def forward(self, x):
        for layer in self.layers:
            x = torch.tanh(layer(x)) * torch.sigmoid(x)
        return x.square().mean()


class Loop(nn.Module):
    """A recurrent network as a loop: thousands of ops whose tensors are small."""

    def __init__(self, width=32, vocabulary=64):
        super().__init__()
        self.embedding, self.cell = nn.Embedding(vocabulary, width), nn.LSTMCell(width, width)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens, labels):
        x = self.embedding(tokens)
        h = c = x.new_zeros(x.shape[0], x.shape[2])
        states = []
        for step in range(x.shape[1]):
            h, c = self.cell(x[:, step], (h, c))
            states.append(h)
        return F.cross_entropy(self.head(torch.stack(states, 1)).flatten(0, 1), labels.flatten())


def _images(batch, classes, size=64):
    return torch.randn(batch, 3, size, size), torch.randint(0, classes, (batch,))


def _tokens(batch=8, length=128, vocabulary=2048):
    return torch.randint(0, vocabulary, (batch, length)), torch.randint(0, vocabulary, (batch, length))


def _segments(batch, size=64):
    return torch.randn(batch, 3, size, size), torch.randint(0, 4, (batch, size, size))


_MODELS = {
    "vit": lambda: (ViT(), _images(32, 100)),
    "gpt": lambda: (Language(), _tokens()),
    "gpt-dropout": lambda: (Language(dropout=0.1), _tokens()),
    "bert": lambda: (Language(bert=True), _tokens()),
    "moe": lambda: (Language(depth=2, experts=4), _tokens()),
    "resnet18": lambda: (ResNet(), _images(32, 100)),
    "convnext": lambda: (ConvNeXt(), _images(32, 100)),
    "unet": lambda: (UNet(), _segments(8)),
    "chain": lambda: (Chain(5, 64), (torch.randn(8192, 64),)),
    "loop": lambda: (Loop(), _tokens(4, 64, 64)),
    "vit-tiny": lambda: (ViT(96, 2, 4), _images(32, 100)),
    "gpt-tiny": lambda: (Language(128, 2, 4, 64, 256), _tokens(16, 64, 256)),
    "gpt-dropout-tiny": lambda: (Language(128, 2, 4, 64, 256, 0.1), _tokens(16, 64, 256)),
    "moe-tiny": lambda: (Language(128, 1, 4, 64, 256, experts=4), _tokens(16, 64, 256)),
    "unet-tiny": lambda: (UNet(12, 2), _segments(8)),
    "loop-tiny": lambda: (Loop(), _tokens(4, 32, 64)),
    "resnet-tiny": lambda: (ResNet(8, 10), _images(8, 10, 32)),
}

NAMES = tuple(_MODELS)


def make(name, seed=0):
    """A model and its inputs, the same for the same seed."""
    torch.manual_seed(seed)
    return _MODELS[name]()


def units(model):
    """The modules to wrap in `torch.utils.checkpoint`, each of which takes one tensor."""
    if isinstance(model, UNet):
        return [*model.down, *model.decode]
    return list(model.blocks)
