"""Guide 2's models in torch, as in guide2_fluid.py. usage: guide2_torch.py IMAGES EPOCHS NAME..."""

import sys

import torch
from guide2_epochs import measure
from guide2_sources import BATCH_SIZES, CLASSES, STEPS, WORDS
from torch import nn
from torch_streams import Stream


def mnist():
    parts = [
        nn.Conv2d(1, 20, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(20, 50, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
    ]
    return nn.Sequential(*parts, nn.Flatten(), nn.Linear(800, CLASSES))


def conv_norm(channels, filters, size, stride=1, groups=1, act=True):
    conv = nn.Conv2d(channels, filters, size, stride, size // 2, groups=groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(filters), *([nn.ReLU()] if act else []))


class Excitation(nn.Module):
    """Channels scaled by what their means say."""

    def __init__(self, channels):
        super().__init__()
        self.squeeze = nn.Linear(channels, channels // 8)
        self.excite = nn.Linear(channels // 8, channels)

    def forward(self, x):
        scale = torch.sigmoid(self.excite(torch.relu(self.squeeze(x.mean((2, 3))))))
        return x * scale[:, :, None, None]


class Bottleneck(nn.Module):
    """1x1, 3x3 and 1x1 convolutions beside a shortcut."""

    def __init__(self, channels, filters, stride, groups, excited):
        super().__init__()
        wide = filters * (2 if excited else 4)
        self.body = nn.Sequential(
            conv_norm(channels, filters, 1),
            conv_norm(filters, filters, 3, stride, groups),
            conv_norm(filters, wide, 1, act=False),
            *([Excitation(wide)] if excited else []),
        )
        self.short = conv_norm(channels, wide, 1, stride, act=False)

    def forward(self, x):
        return torch.relu(self.short(x) + self.body(x))


def images(blocks, channels):
    return nn.Sequential(*blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, CLASSES))


def resnet():
    plan = [(16, 8, 1), (32, 16, 2), (64, 32, 2)]
    return images([conv_norm(3, 16, 3, 2)] + [Bottleneck(c, f, s, 1, False) for c, f, s in plan], 128)


def se_resnext():
    plan = [(16, 16, 1), (32, 32, 2), (64, 64, 2)]
    return images([conv_norm(3, 16, 3, 2)] + [Bottleneck(c, f, s, 8, True) for c, f, s in plan], 128)


def mobilenet():
    blocks, channels = [conv_norm(3, 8, 3, 2)], 8
    for filters, stride in ((16, 1), (32, 2), (32, 1), (64, 2), (64, 1)):
        blocks += [conv_norm(channels, channels, 3, stride, channels), conv_norm(channels, filters, 1)]
        channels = filters
    return images(blocks, channels)


class Ptb(nn.Module):
    """A word model: an LSTM written out step by step between an embedding and a linear layer."""

    def __init__(self, hidden=64):
        super().__init__()
        self.table = nn.Embedding(WORDS, hidden)
        self.gates = nn.Linear(2 * hidden, 4 * hidden)
        self.head = nn.Linear(hidden, WORDS)
        self.hidden = hidden

    def forward(self, words):
        embedded = torch.split(self.table(words), 1, 1)
        state = cell = torch.zeros(BATCH_SIZES["PTB"], self.hidden)
        states = []
        for word in embedded:
            i, j, f, o = torch.chunk(self.gates(torch.cat([word[:, 0], state], 1)), 4, 1)
            cell = cell * torch.sigmoid(f + 1.0) + torch.sigmoid(i) * torch.tanh(j)
            state = torch.tanh(cell) * torch.sigmoid(o)
            states.append(state)
        assert len(states) == STEPS
        return self.head(torch.stack(states, 1).reshape(-1, self.hidden))


MODELS = {
    "MNIST": mnist,
    "ResNet": resnet,
    "SE-ResNeXt": se_resnext,
    "PTB": Ptb,
    "MobileNet V1": mobilenet,
}


def trainer(model):
    net = MODELS[model]()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)

    def train(batch):
        x, y = batch
        loss = nn.functional.cross_entropy(net(x), y.reshape(-1))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach().numpy()

    return train


def loader(reader, model, process):
    options = {"num_workers": 1, "prefetch_factor": 8} if process else {}
    size = None if model == "PTB" else BATCH_SIZES[model]
    made = torch.utils.data.DataLoader(Stream(reader), batch_size=size, **options)
    return lambda: iter(made)


measure(sys.argv[3:], int(sys.argv[1]), int(sys.argv[2]), trainer, loader)
