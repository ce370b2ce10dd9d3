"""Steps of larger models, eager or compiled. usage: models_torch.py SECONDS MODEL..."""

import contextlib
import sys

import torch
from models_data import FACTORS, FIELDS, HEADS, IMAGES, LAYERS, ROWS, STATES, VECTOR, WIDTH, WORDS, batch_of
from timing import result
from torch import nn
from torch_mode import Mode


def convolved(channels, filters, size, stride=1, act=True, groups=1):
    conv = nn.Conv2d(channels, filters, size, stride, (size - 1) // 2, groups=groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(filters), *([nn.ReLU(inplace=True)] if act else []))


class Block(nn.Module):
    def __init__(self, channels, filters, stride, wide):
        super().__init__()
        if wide:
            parts = [convolved(channels, filters, 1), convolved(filters, filters, 3, stride)]
            parts.append(convolved(filters, 4 * filters, 1, act=False))
        else:
            parts = [convolved(channels, filters, 3, stride), convolved(filters, filters, 3, act=False)]
        self.way = nn.Sequential(*parts)
        self.out = 4 * filters if wide else filters
        same = stride == 1 and channels == self.out
        self.short = nn.Identity() if same else convolved(channels, self.out, 1, stride, False)

    def forward(self, x):
        return torch.relu(self.short(x) + self.way(x))


def classifier(parts, channels):
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10))


def resnet(parts, channels, stages, wide):
    for filters, count, first in stages:
        for k in range(count):
            parts.append(Block(channels, filters, first if k == 0 else 1, wide))
            channels = parts[-1].out
    return classifier(parts, channels)


def resnet20():
    return resnet([convolved(3, 16, 3)], 16, [(16, 3, 1), (32, 3, 2), (64, 3, 2)], False)


def resnet50():
    begin = [convolved(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)]
    return resnet(begin, 64, [(64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)], True)


def mobilenet():
    parts, channels = [convolved(3, 32, 3, 2)], 32
    for filters, stride in (
        [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)]
        + 5 * [(512, 1)]
        + [
            (1024, 2),
            (1024, 1),
        ]
    ):
        parts += [convolved(channels, channels, 3, stride, groups=channels), convolved(channels, filters, 1)]
        channels = filters
    return classifier(parts, channels)


def vgg_block():
    parts = []
    for channels in (64, 128, 128):
        parts += [nn.Conv2d(channels, 128, 3, padding=1), nn.ReLU()]
    return classifier([*parts, nn.MaxPool2d(2)], 128)


class Layer(nn.Module):
    def __init__(self, dropout):
        super().__init__()
        self.parts = nn.ModuleList([nn.Linear(WIDTH, WIDTH) for _ in range(4)])
        self.norms = nn.ModuleList([nn.LayerNorm(WIDTH) for _ in range(2)])
        self.wide = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.ReLU(), nn.Linear(4 * WIDTH, WIDTH))
        self.dropout = dropout

    def forward(self, x):
        q, k, v = (
            part(x).view(*x.shape[:2], HEADS, WIDTH // HEADS).transpose(1, 2) for part in self.parts[:3]
        )
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout)
        x = self.norms[0](x + self.parts[3](mixed.transpose(1, 2).reshape(x.shape)))
        return self.norms[1](x + self.wide(x))


class Encoder(nn.Module):
    def __init__(self, dropout=0.1, classes=True):
        super().__init__()
        self.layers = nn.Sequential(*[Layer(dropout) for _ in range(LAYERS)])
        self.head = nn.Linear(WIDTH, 10) if classes else None

    def forward(self, x):
        x = self.layers(x)
        return self.head(x.mean(1)) if self.head else x


class Word2Vec(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.others = (nn.Embedding(ROWS, VECTOR, sparse=True) for _ in range(2))

    def forward(self, x, y):
        scores = (self.others(y) * self.words(x)).sum(-1)
        wanted = torch.cat([torch.ones(x.shape[0], 1), torch.zeros(x.shape[0], y.shape[1] - 1)], 1)
        return nn.functional.binary_cross_entropy_with_logits(scores, wanted)


class DeepFM(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.vectors = (nn.Embedding(ROWS, width, sparse=True) for width in (1, FACTORS))
        parts, wide = [], FIELDS * FACTORS
        for _ in range(3):
            parts += [nn.Linear(wide, 400), nn.ReLU()]
            wide = 400
        self.deep = nn.Sequential(*parts, nn.Linear(400, 1))

    def forward(self, x, y):
        vectors = self.vectors(x)
        both = vectors.sum(1).square() - vectors.square().sum(1)
        score = self.deep(vectors.flatten(1))[:, 0] + self.first(x).sum((1, 2)) + 0.5 * both.sum(1)
        return nn.functional.binary_cross_entropy_with_logits(score, y[:, 0].float())


class Language(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.lstm = nn.Embedding(WORDS, STATES), nn.LSTM(STATES, STATES, 2, batch_first=True)
        self.scores = nn.Linear(STATES, WORDS)

    def forward(self, x, y):
        scores = self.scores(self.lstm(self.words(x))[0])
        return nn.functional.cross_entropy(scores.flatten(0, 1), y.flatten())


class Optimizers:
    def __init__(self, *parts):
        self.parts = parts

    def zero_grad(self):
        for part in self.parts:
            part.zero_grad()

    def step(self):
        for part in self.parts:
            part.step()


def optimizer_of(name, net):
    if name in IMAGES:
        return torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    if name == "encoder":
        return torch.optim.Adam(net.parameters(), lr=0.001)
    if name == "deepfm":
        sparse = [*net.first.parameters(), *net.vectors.parameters()]
        return Optimizers(
            torch.optim.SparseAdam(sparse, lr=0.001), torch.optim.Adam(net.deep.parameters(), lr=0.001)
        )
    return torch.optim.SGD(net.parameters(), lr=0.1)


MODELS = {
    "resnet-20": resnet20,
    "resnet-50": resnet50,
    "mobilenet": mobilenet,
    "vgg block": vgg_block,
    "encoder": Encoder,
    "encoder, inference": lambda: Encoder(0.0, False).eval(),
    "word2vec": Word2Vec,
    "deepfm": DeepFM,
    "ptb lstm": Language,
}
mode = Mode()
for name in sys.argv[2:]:
    net, batch = MODELS[name](), batch_of(name)
    inference = name.endswith("inference")
    optimizer = None if inference else optimizer_of(name, net)
    own_loss = isinstance(net, (Word2Vec, DeepFM, Language))
    net = mode.made(net)

    def step(net=net, optimizer=optimizer, batch=batch, own_loss=own_loss):
        x, y = (torch.from_numpy(batch[key]) for key in "xy")
        if optimizer is None:
            return net(x).numpy()
        optimizer.zero_grad()
        loss = net(x, y) if own_loss else nn.functional.cross_entropy(net(x), y[:, 0])
        loss.backward()
        optimizer.step()
        return loss.detach().numpy()

    with torch.no_grad() if inference else contextlib.nullcontext():
        mode.measure(name, step, float(sys.argv[1]))
result(mode.metrics)
