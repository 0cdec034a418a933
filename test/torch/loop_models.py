"""The networks of `loops`."""

import models
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint


def mlp(*widths, act=nn.GELU):
    """Linear layers with an activation between them."""
    layers = [one for pair in zip(widths, widths[1:]) for one in (nn.Linear(*pair), act())]
    return nn.Sequential(*layers[:-1])


class Recurrent(nn.Module):
    """A cell in a loop."""

    def __init__(self, kind, width=64):
        super().__init__()
        self.cell, self.head = kind(width, width), nn.Linear(width, 1)

    def forward(self, x):
        state, states = None, []
        for one in x.unbind(1):
            state = self.cell(one, state)
            states.append(state[0] if isinstance(state, tuple) else state)
        return self.head(torch.stack(states, 1)).squeeze(-1)


class Autoencoder(nn.Module):
    """Variational."""

    def __init__(self):
        super().__init__()
        self.encode, self.decode = mlp(128, 256, 256, 32), mlp(16, 256, 256, 128)

    def forward(self, x):
        mean, logarithm = self.encode(x).chunk(2, 1)
        z = mean + torch.randn_like(mean) * torch.exp(logarithm / 2)
        return self.decode(z), -0.5 * (1 + logarithm - mean.square() - logarithm.exp()).mean()


class Diffusion(nn.Module):
    """A denoiser that is told the time."""

    def __init__(self, width=24):
        super().__init__()
        self.inside, self.time = nn.Conv2d(1, width, 3, 1, 1), nn.Linear(2, width)
        self.layers = nn.ModuleList(nn.Conv2d(width, width, 3, 1, 1) for _ in range(3))
        self.outside = nn.Conv2d(width, 1, 3, 1, 1)

    def forward(self, x):
        time = torch.rand(len(x), 1)
        noise, angle = torch.randn_like(x), time * torch.pi / 2
        told = self.time(torch.cat([angle.cos(), angle.sin()], 1))[..., None, None]
        y = self.inside(angle.cos()[..., None, None] * x + angle.sin()[..., None, None] * noise)
        for layer in self.layers:
            y = y + F.silu(layer(F.group_norm(y + told, 4)))
        return F.mse_loss(self.outside(y), noise)


class Messages(nn.Module):
    """Nodes of a graph, which tell their neighbours."""

    def __init__(self, width=32):
        super().__init__()
        self.inside, self.head = nn.Linear(8, width), nn.Linear(width, 4)
        self.tell = nn.ModuleList(mlp(2 * width, width, width) for _ in range(3))

    def forward(self, x, source, target):
        x = self.inside(x)
        for tell in self.tell:
            told = tell(torch.cat([x[source], x[target]], 1))
            near = torch.zeros_like(x).index_add(0, target, told)
            most = torch.zeros_like(x).scatter_reduce(0, target[:, None].expand_as(told), told, "amax")
            x = x + F.relu(near + most)
        return self.head(x)


class Sets(nn.Module):
    """Sums over the elements of sets of several sizes."""

    def __init__(self):
        super().__init__()
        self.each, self.all = mlp(8, 64, 64, 64), mlp(64, 64, 1)

    def forward(self, x, mask):
        whole = self.each(x).masked_fill(~mask[..., None], 0).sum(1) / mask.sum(1, keepdim=True)
        return self.all(whole).squeeze(1)


class Experts(nn.Module):
    """Two of four experts for each token."""

    def __init__(self, width=32):
        super().__init__()
        self.gate, self.experts = nn.Linear(width, 4), nn.ModuleList(mlp(width, 2 * width, width) for _ in range(4))
        self.head = nn.Linear(width, 8)

    def forward(self, x):
        weights, chosen = self.gate(x).softmax(1).topk(2)
        shares = torch.zeros(len(x), 4).scatter(1, chosen, weights)
        y = sum(shares[:, index, None] * expert(x) for index, expert in enumerate(self.experts))
        return self.head(x + y), 4 * (shares.mean(0) * F.one_hot(chosen, 4).float().mean((0, 1))).sum()


class Adapted(nn.Module):
    """A frozen layer and what is learned beside it."""

    def __init__(self, base, rank=4):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down = nn.Linear(base.in_features, rank, bias=False)
        self.up = nn.Linear(rank, base.out_features, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, x):
        return self.base(x) + self.up(self.down(x))


class Recommender(nn.Module):
    """Bags of what users liked."""

    def __init__(self, width=32):
        super().__init__()
        self.liked, self.item = nn.EmbeddingBag(500, width, mode="mean"), nn.Embedding(500, width)
        self.score = mlp(2 * width, 128, 128, 1)

    def forward(self, bags, offsets, items):
        return self.score(torch.cat([self.liked(bags, offsets), self.item(items)], 1)).squeeze(1)


class Tasks(nn.Module):
    """One trunk with two heads."""

    def __init__(self):
        super().__init__()
        self.trunk, self.kind, self.size = mlp(32, 256, 256, 64), mlp(64, 64, 5), mlp(64, 64, 1)

    def forward(self, x):
        shared = self.trunk(x).relu()
        return self.kind(shared), self.size(shared).squeeze(1)


class Flow(nn.Module):
    """An ordinary differential equation in steps of Euler."""

    def __init__(self):
        super().__init__()
        self.speed = mlp(17, 64, 16, act=nn.Tanh)

    def forward(self, x):
        for time in range(12):
            x = x + self.speed(F.pad(x, (0, 1), value=time / 12)) / 12
        return x


class Checkpointed(nn.Module):
    """Blocks that are checkpointed already."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(models.Block(64, 4, "fused", True, 0.1) for _ in range(3))

    def forward(self, x):
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False)
        return x


class Quantized(nn.Module):
    """An autoencoder whose codes follow what they stand for, without gradients."""

    def __init__(self):
        super().__init__()
        self.encode, self.decode = mlp(64, 128, 16), mlp(16, 128, 64)
        self.register_buffer("codes", torch.randn(32, 16))

    def forward(self, x):
        z = self.encode(x)
        chosen = torch.cdist(z, self.codes).argmin(1)
        near = self.codes[chosen]
        with torch.no_grad():
            hot = F.one_hot(chosen, 32).float()
            self.codes.lerp_((hot.T @ z) / (1 + hot.sum(0)[:, None]), 0.1)
        return self.decode(z + (near - z).detach()), F.mse_loss(z, near.detach())


class Words(nn.Module):
    """A transformer that gives the logits of the next word."""

    def __init__(self, width=64, vocabulary=1024):
        super().__init__()
        self.embedding, self.head = nn.Embedding(vocabulary, width), nn.Linear(width, vocabulary)
        self.blocks = nn.Sequential(*(models.Block(width, 4, "fused", True) for _ in range(2)))

    def forward(self, tokens):
        return self.head(self.blocks(self.embedding(tokens)))


class Tagger(nn.Module):
    """A recurrent network of PyTorch's, and layers for each step of a sequence."""

    def __init__(self, kind):
        super().__init__()
        self.cells = kind(64, 64, batch_first=True)
        self.head = mlp(64, 256, 256, 256, 32, act=nn.GELU)

    def forward(self, x):
        return self.head(self.cells(x)[0])


def convolution(inputs, outputs):
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, 1, 1), nn.ReLU())
