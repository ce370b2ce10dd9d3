"""Training steps on one GPU with PyTorch. usage: gpu_torch.py PLACE SECONDS MODE NETWORK...

MODE is eager, compile (torch.compile) or graph (the whole step as one CUDA graph). TF32 is off, as everywhere.
"""

import sys

import numpy as np
import torch
from gpu_networks import SIZES, STEPS, batch_of
from timing import blocks, result
from torch import nn

torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
torch.backends.cudnn.benchmark = True


def five():
    parts = []
    for layer in range(5):
        parts += [nn.Linear(8, 8), *([nn.ReLU()] if layer < 4 else [])]
    return nn.Sequential(*parts)


def mlp():
    return nn.Sequential(nn.Linear(784, 200), nn.ReLU(), nn.Linear(200, 100), nn.ReLU(), nn.Linear(100, 10))


def lenet():
    parts, channels = [], 1
    for filters in (20, 50):
        parts += [nn.Conv2d(channels, filters, 5), nn.ReLU(), nn.MaxPool2d(2), nn.BatchNorm2d(filters)]
        channels = filters
    return nn.Sequential(*parts, nn.Flatten(), nn.Linear(800, 10))


def convolved(channels, filters, size, stride=1, act=True):
    parts = [nn.Conv2d(channels, filters, size, stride, (size - 1) // 2, bias=False), nn.BatchNorm2d(filters)]
    return nn.Sequential(*parts, *([nn.ReLU(inplace=True)] if act else []))


class Block(nn.Module):
    def __init__(self, channels, filters, stride, wide):
        super().__init__()
        if wide:
            self.way = nn.Sequential(
                convolved(channels, filters, 1),
                convolved(filters, filters, 3, stride),
                convolved(filters, 4 * filters, 1, act=False),
            )
        else:
            self.way = nn.Sequential(
                convolved(channels, filters, 3, stride), convolved(filters, filters, 3, act=False)
            )
        self.out = 4 * filters if wide else filters
        same = stride == 1 and channels == self.out
        self.short = nn.Identity() if same else convolved(channels, self.out, 1, stride, False)

    def forward(self, x):
        return torch.relu(self.short(x) + self.way(x))


def blocks_of(channels, stages, wide):
    made = []
    for filters, count, first in stages:
        for k in range(count):
            made.append(Block(channels, filters, first if k == 0 else 1, wide))
            channels = made[-1].out
    return [*made, nn.AdaptiveAvgPool2d(1), nn.Flatten()]


def resnet20():
    return nn.Sequential(
        convolved(3, 16, 3), *blocks_of(16, [(16, 3, 1), (32, 3, 2), (64, 3, 2)], False), nn.Linear(64, 10)
    )


def resnet50():
    stages = [(64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)]
    return nn.Sequential(
        convolved(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1), *blocks_of(64, stages, True), nn.Linear(2048, 1000)
    )


def adam(parameters, graph):
    return torch.optim.Adam(parameters, lr=0.001, capturable=graph)


def momentum(parameters, graph):
    return torch.optim.SGD(parameters, lr=0.01, momentum=0.9)


def sgd(parameters, graph):
    return torch.optim.SGD(parameters, lr=0.01)


NETWORKS = {
    "five 8x8": (five, adam),
    "mlp": (mlp, sgd),
    "lenet": (lenet, momentum),
    "resnet-20": (resnet20, momentum),
    "resnet-50": (resnet50, momentum),
}
device = torch.device("cpu" if sys.argv[1] == "cpu" else "cuda")
seconds, mode = float(sys.argv[2]), sys.argv[3]


def stepper(name):
    """A function that does one step and returns the loss, on the device."""
    sizes = SIZES[name]
    build, optimizer_of = NETWORKS[name]
    net = build().to(device)
    optimizer = optimizer_of(net.parameters(), mode == "graph")
    x, y = (torch.from_numpy(array).to(device) for array in batch_of(np, sizes))
    criterion = nn.functional.cross_entropy if sizes.classes else nn.functional.mse_loss
    y = y[:, 0] if sizes.classes else y

    def loss_of(x, y):
        return criterion(net(x), y)

    if mode == "compile":
        loss_of = torch.compile(loss_of)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(x, y)
        loss.backward()
        optimizer.step()
        return loss

    if mode != "graph":
        return step
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kept = step()

    def replay():
        graph.replay()
        return kept

    return replay


metrics = {}
for name in sys.argv[4:]:
    step = stepper(name)

    def queued(count, step=step):
        for _ in range(count - 1):
            step()
        return float(step().detach())

    metrics[name] = blocks(lambda: queued(1), seconds)
    many = blocks(lambda: queued(STEPS), seconds)
    metrics["%s, loss every %d steps" % (name, STEPS)] = [value / STEPS for value in many]
result(metrics)
