"""Training loops of the kinds that people write."""

import copy

import loop_models as nets
import models
import torch
import torch.nn.functional as F
from torch import nn, optim


def _update(loss, optimizer):
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.detach()


def _classifier(compile):
    """Label smoothing, momentum, and a rate that a schedule lowers."""
    model, x, labels = nets.mlp(64, 128, 128, 128, 10), torch.randn(1024, 64), torch.randint(0, 10, (1024,))
    optimizer = optim.SGD(model.parameters(), 0.1, momentum=0.9)
    run, schedule = compile(model), optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)

    def train():
        loss = _update(F.cross_entropy(run(x), labels, label_smoothing=0.1), optimizer)
        schedule.step()
        return loss

    return [model], train


def _convolutions(compile):
    blocks = [nn.Sequential(nn.Conv2d(i, 16, 3, 1, 1), nn.BatchNorm2d(16), nn.ReLU()) for i in (3, 16, 16)]
    model = nn.Sequential(*blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.1), nn.Linear(16, 10))
    x, labels = torch.randn(16, 3, 24, 24), torch.randint(0, 10, (16,))
    run, optimizer = compile(model), optim.Adam(model.parameters(), weight_decay=1e-4)
    return [model], lambda: _update(F.cross_entropy(run(x), labels), optimizer)


def _recurrent(kind):
    def make(compile):
        model, x, y = nets.Recurrent(kind), torch.randn(64, 24, 64), torch.randn(64, 24)
        run, optimizer = compile(model), optim.RMSprop(model.parameters())

        def train():
            loss = F.huber_loss(run(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            optimizer.zero_grad()
            return loss.detach()

        return [model], train

    return make


def _language(compile):
    """Tied weights; gradients of four micro-batches add up."""
    model = models.Language(64, 2, 4, 64, 256, dropout=0.1)
    model.head.weight = model.embedding.weight
    tokens = torch.randint(0, 256, (4, 8, 65))
    run, optimizer, number = compile(model), optim.AdamW(model.parameters()), 0

    def train():
        nonlocal number
        part = tokens[number % 4]
        loss = run(part[:, :-1], part[:, 1:]) / 4
        loss.backward()
        number += 1
        if number % 4 == 0:
            optimizer.step()
            optimizer.zero_grad()
        return loss.detach()

    return [model], train


def _variational(compile):
    model, x = nets.Autoencoder(), torch.rand(512, 128)
    run, optimizer = compile(model), optim.Adam(model.parameters())

    def train():
        logits, divergence = run(x)
        return _update(F.binary_cross_entropy_with_logits(logits, x) + 0.1 * divergence, optimizer)

    return [model], train


def _adversarial(compile):
    """Two models, each compiled with its optimizer."""
    generator, critic = nets.mlp(16, 128, 128, 64), nets.mlp(64, 128, 128, 1, act=nn.LeakyReLU)
    make, judge = compile(generator), compile(critic)
    first, second = optim.Adam(generator.parameters(), 1e-3), optim.Adam(critic.parameters(), 1e-3)
    real, noise, ones = torch.randn(512, 64), torch.randn(512, 16), torch.ones(512, 1)

    def train():
        fake = make(noise)
        loss = F.binary_cross_entropy_with_logits(judge(real), ones)
        loss = loss + F.binary_cross_entropy_with_logits(judge(fake.detach()), 0 * ones)
        found = [_update(loss, second)]
        found.append(_update(F.binary_cross_entropy_with_logits(judge(fake), ones), first))
        second.zero_grad()
        return torch.stack(found)

    return [generator, critic], train


def _distillation(compile):
    teacher, student = nets.mlp(64, 192, 10).eval(), nets.mlp(64, 128, 128, 128, 10)
    x, labels = torch.randn(1024, 64), torch.randint(0, 10, (1024,))
    run, optimizer = compile(student), optim.SGD(student.parameters(), 0.05)

    def train():
        with torch.no_grad():
            wanted = F.log_softmax(teacher(x) / 2, 1)
        logits = run(x)
        loss = F.kl_div(F.log_softmax(logits / 2, 1), wanted, reduction="batchmean", log_target=True)
        return _update(loss + F.cross_entropy(logits, labels), optimizer)

    return [student], train


def _contrastive(compile):
    """Two views through one encoder."""
    model, one, two = nets.mlp(64, 256, 256, 32), torch.randn(256, 64), torch.randn(256, 64)
    run, optimizer = compile(model), optim.AdamW(model.parameters())

    def train():
        first, second = F.normalize(run(one), dim=1), F.normalize(run(two), dim=1)
        return _update(F.cross_entropy(first @ second.T / 0.1, torch.arange(256)), optimizer)

    return [model], train


def _triplet(compile):
    model, x = nets.mlp(64, 256, 256, 32), torch.randn(3, 256, 64)
    run, optimizer = compile(model), optim.Adagrad(model.parameters())
    return [model], lambda: _update(F.triplet_margin_loss(*(run(one) for one in x)), optimizer)


def _diffusion(compile):
    """An average of the parameters follows them."""
    model, x = nets.Diffusion(), torch.randn(8, 1, 24, 24)
    average = copy.deepcopy(model).requires_grad_(False)
    run, optimizer = compile(model), optim.AdamW(model.parameters())

    def train():
        loss = _update(run(x), optimizer)
        with torch.no_grad():
            for slow, fast in zip(average.parameters(), model.parameters()):
                slow.lerp_(fast, 0.1)
        return loss

    return [model, average], train


def _graph(compile):
    model, x, labels = nets.Messages(), torch.randn(500, 8), torch.randint(0, 4, (500,))
    source, target = torch.randint(0, 500, (2, 2000))
    run, optimizer = compile(model), optim.Adam(model.parameters())
    known = torch.rand(500) < 0.5
    return [model], lambda: _update(F.cross_entropy(run(x, source, target)[known], labels[known]), optimizer)


def _sets(compile):
    model, x, mask = nets.Sets(), torch.randn(64, 32, 8), torch.arange(32) < torch.randint(1, 33, (64, 1))
    run, optimizer, y = compile(model), optim.NAdam(model.parameters()), torch.randn(64)
    return [model], lambda: _update(F.l1_loss(run(x, mask), y), optimizer)


def _experts(compile):
    model, x, labels = nets.Experts(), torch.randn(1024, 32), torch.randint(0, 8, (1024,))
    run, optimizer = compile(model), optim.Adam(model.parameters())

    def train():
        logits, balance = run(x)
        return _update(F.cross_entropy(logits, labels) + 0.01 * balance, optimizer)

    return [model], train


def _autocast(compile):
    model, x, y = nets.mlp(64, 256, 256, 256, 8), torch.randn(512, 64), torch.randn(512, 8)
    run, optimizer = compile(model), optim.Adam(model.parameters())

    def train():
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = F.mse_loss(run(x), y)
        return _update(loss, optimizer)

    return [model], train


def _adapters(compile):
    model, x, labels = nets.mlp(64, 256, 256, 256, 10), torch.randn(512, 64), torch.randint(0, 10, (512,))
    model = nn.Sequential(*(nets.Adapted(one) if isinstance(one, nn.Linear) else one for one in model))
    run, optimizer = compile(model), optim.AdamW(one for one in model.parameters() if one.requires_grad)
    return [model], lambda: _update(F.cross_entropy(run(x), labels), optimizer)


def _recommender(compile):
    model, bags, items = nets.Recommender(), torch.randint(0, 500, (4000,)), torch.randint(0, 500, (1000,))
    offsets, clicks = torch.arange(0, 4000, 4), torch.rand(1000).round()
    run, optimizer = compile(model), optim.Adagrad(model.parameters())
    return [model], lambda: _update(F.binary_cross_entropy_with_logits(run(bags, offsets, items), clicks), optimizer)


def _physics(compile):
    """A solution of u'' = -sin x: differences of three calls."""
    model, x, far = nets.mlp(1, 64, 64, 1, act=nn.Tanh), torch.linspace(0, 3, 1000)[:, None], 0.05
    places = x - far, x, x + far
    run, optimizer = compile(model), optim.Adam(model.parameters())

    def train():
        left, middle, right = (run(one) for one in places)
        return _update(F.mse_loss((left - 2 * middle + right) / far**2, -x.sin()) + middle[0].square().sum(), optimizer)

    return [model], train


def _segmentation(compile):
    model, x, labels = models.UNet(8, 2), torch.randn(4, 3, 32, 32), torch.randint(0, 4, (4, 32, 32))
    run, optimizer = compile(model), optim.SGD(model.parameters(), 0.1, nesterov=True, momentum=0.9)
    return [model], lambda: _update(run(x, labels), optimizer)


def _tasks(compile):
    model, x, labels, y = nets.Tasks(), torch.randn(512, 32), torch.randint(0, 5, (512,)), torch.randn(512)
    weights = nn.Parameter(torch.zeros(2))
    run, optimizer = compile(model), optim.Adam([*model.parameters(), weights])

    def train():
        kind, size = run(x)
        losses = torch.stack([F.cross_entropy(kind, labels), F.mse_loss(size, y)])
        return _update((losses * torch.exp(-weights) + weights).sum(), optimizer)

    return [model], train


def _policy(compile):
    """Actions are drawn; the rewarded ones become likelier."""
    model, states = nets.mlp(16, 128, 128, 4, act=nn.Tanh), torch.randn(1024, 16)
    run, optimizer = compile(model), optim.Adam(model.parameters())

    def train():
        actions = torch.distributions.Categorical(logits=run(states))
        drawn = actions.sample()
        reward = (drawn == states[:, :4].argmax(1)).float()
        loss = -(actions.log_prob(drawn) * (reward - reward.mean())).mean() - 0.01 * actions.entropy().mean()
        return _update(loss, optimizer)

    return [model], train


def _flow(compile):
    model, x = nets.Flow(), torch.randn(512, 16)
    run, optimizer, y = compile(model), optim.Adam(model.parameters(), amsgrad=True), x.roll(1, 1)
    return [model], lambda: _update(F.mse_loss(run(x), y), optimizer)


def _checkpointed(compile):
    model, x, y = nets.Checkpointed(), torch.randn(8, 64, 64), torch.randn(8, 64, 64)
    run, optimizer = compile(model), optim.AdamW(model.parameters())
    return [model], lambda: _update(F.mse_loss(run(x), y), optimizer)


def _codes(compile):
    model, x = nets.Quantized(), torch.rand(512, 64)
    run, optimizer = compile(model), optim.Adam(model.parameters())

    def train():
        decoded, far = run(x)
        return _update(F.mse_loss(decoded, x) + far, optimizer)

    return [model], train


def _words(compile):
    """The loss keeps more than the model."""
    model, tokens = nets.Words(), torch.randint(0, 1024, (8, 65))
    run, optimizer = compile(model), optim.AdamW(model.parameters())

    def train():
        logits = run(tokens[:, :-1])
        return _update(F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten()), optimizer)

    return [model], train


def _tagger(kind):
    """Dynamo compiles no `nn.LSTM` and cuts the model behind it: it runs before the first graph."""

    def make(compile):
        model, x, labels = nets.Tagger(kind), torch.randn(64, 48, 64), torch.randint(0, 32, (64 * 48,))
        run, optimizer = compile(model), optim.Adam(model.parameters())
        return [model], lambda: _update(F.cross_entropy(run(x).flatten(0, 1), labels), optimizer)

    return make


def _attacked(compile):
    """Examples that a first backward finds: no parameter gets a gradient by it."""
    model, x, labels = nets.mlp(64, 256, 256, 10), torch.randn(1024, 64), torch.randint(0, 10, (1024,))
    run, optimizer = compile(model), optim.SGD(model.parameters(), 0.1)

    def train():
        noisy = x.clone().requires_grad_()
        (slope,) = torch.autograd.grad(F.cross_entropy(run(noisy), labels), noisy)
        return _update(F.cross_entropy(run((x + 0.1 * slope.sign()).detach()), labels), optimizer)

    return [model], train


def _mean_teacher(compile):
    """A slow copy of the model runs before it."""
    model, x, labels = nets.mlp(64, 256, 256, 10), torch.randn(1024, 64), torch.randint(0, 10, (1024,))
    slow = copy.deepcopy(model).requires_grad_(False)
    run, optimizer = compile(model), optim.AdamW(model.parameters())

    def train():
        with torch.no_grad():
            wanted = slow(x + 0.1 * torch.randn_like(x))
        logits = run(x + 0.1 * torch.randn_like(x))
        loss = _update(F.cross_entropy(logits, labels) + F.mse_loss(logits, wanted), optimizer)
        with torch.no_grad():
            for far, near in zip(slow.parameters(), model.parameters()):
                far.lerp_(near, 0.01)
        return loss

    return [model, slow], train


def _perceptual(compile):
    """Features of what is wanted are there before the first graph; the loss runs through the same network."""
    frozen = nn.Sequential(nn.Conv2d(3, 16, 3, 1, 1), nn.ReLU(), nn.Conv2d(16, 16, 3, 1, 1)).requires_grad_(False)
    model = nn.Sequential(*(nets.convolution(*one) for one in ((3, 32), (32, 32), (32, 32))), nn.Conv2d(32, 3, 3, 1, 1))
    run, optimizer, x = compile(model), optim.Adam(model.parameters()), torch.randn(4, 3, 48, 48)

    def train():
        wanted = frozen(x)
        return _update(F.mse_loss(frozen(run(x)), wanted), optimizer)

    return [model], train


def _penalized(compile):
    """A critic, which is not compiled, is held to slopes of one before the generator's turn."""
    critic, generator = nets.mlp(32, 64, 1, act=nn.Tanh), nets.mlp(16, 256, 256, 32)
    run, real, noise = compile(generator), torch.randn(512, 32), torch.randn(512, 16)
    first, second = optim.Adam(generator.parameters()), optim.Adam(critic.parameters())

    def train():
        fake = run(noise).detach()
        between = (0.5 * real + 0.5 * fake).requires_grad_()
        (slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
        loss = critic(fake).mean() - critic(real).mean() + 10 * (slope.norm(dim=1) - 1).square().mean()
        found = [_update(loss, second), _update(-critic(run(noise)).mean(), first)]
        second.zero_grad()
        return torch.stack(found)

    return [critic, generator], train


LOOPS = {
    "classifier, schedule of rates": _classifier,
    "convolutions, batch norm, dropout": _convolutions,
    "LSTM cells, clipped gradients": _recurrent(nn.LSTMCell),
    "GRU cells, clipped gradients": _recurrent(nn.GRUCell),
    "GPT, tied weights, four micro-batches": _language,
    "GPT, loss outside of the model": _words,
    "variational autoencoder": _variational,
    "quantized autoencoder, codes that follow": _codes,
    "GAN": _adversarial,
    "distillation": _distillation,
    "contrastive": _contrastive,
    "triplets": _triplet,
    "diffusion, averaged parameters": _diffusion,
    "graph network": _graph,
    "sets with masks": _sets,
    "mixture of experts": _experts,
    "autocast to bfloat16": _autocast,
    "LoRA": _adapters,
    "recommender, bags": _recommender,
    "physics-informed": _physics,
    "U-Net": _segmentation,
    "two tasks": _tasks,
    "policy gradient": _policy,
    "neural ODE": _flow,
    "checkpointed blocks": _checkpointed,
    "tagger, nn.LSTM": _tagger(nn.LSTM),
    "tagger, nn.GRU": _tagger(nn.GRU),
    "adversarial examples": _attacked,
    "mean teacher": _mean_teacher,
    "perceptual loss": _perceptual,
    "gradient penalty": _penalized,
}
"""By name what takes `compile` and gives the modules of a loop and what trains one step and gives its loss."""
