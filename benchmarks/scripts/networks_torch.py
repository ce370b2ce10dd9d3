"""Training steps of three networks, eager or compiled. usage: networks_torch.py SECONDS NETWORK..."""

import sys

import numpy as np
import torch
from timing import result
from torch import nn
from torch_mode import Mode


def softmax_regression():
    net = nn.Linear(784, 10)
    return net, torch.optim.Adam(net.parameters(), lr=0.01), 512


def mlp():
    net = nn.Sequential(nn.Linear(784, 200), nn.ReLU(), nn.Linear(200, 200), nn.ReLU(), nn.Linear(200, 10))
    return net, torch.optim.SGD(net.parameters(), lr=0.01), 64


def lenet():
    parts, channels = [nn.Unflatten(1, (1, 28, 28))], 1
    for filters in (20, 50):
        parts += [nn.Conv2d(channels, filters, 5), nn.ReLU(), nn.MaxPool2d(2), nn.BatchNorm2d(filters)]
        channels = filters
    net = nn.Sequential(*parts, nn.Flatten(), nn.Linear(800, 10))
    return net, torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9), 64


NETWORKS = {"softmax regression": softmax_regression, "mlp": mlp, "lenet": lenet}
mode = Mode()
for name in sys.argv[2:]:
    net, optimizer, batch = NETWORKS[name]()
    random = np.random.RandomState(0)
    image = random.rand(batch, 784).astype("float32")
    label = random.randint(0, 10, (batch, 1)).astype("int64")

    net = mode.made(net)

    def step(net=net, optimizer=optimizer, image=image, label=label):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(torch.from_numpy(image)), torch.from_numpy(label[:, 0]))
        loss.backward()
        optimizer.step()
        return loss.detach().numpy()

    mode.measure(name, step, float(sys.argv[1]))
result(mode.metrics)
