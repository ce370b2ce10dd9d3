"""Batch sizes that change, eager. usage: shapes_torch.py SIZES PASSES"""

import sys

import torch
from shapes_order import measured
from timing import result
from torch import nn


def six():
    return [part for _ in range(6) for part in (nn.Linear(64, 64), nn.ReLU(), nn.BatchNorm1d(64))]


def five():
    return [part for _ in range(5) for part in (nn.Linear(8, 8), nn.ReLU())][:-1]


def stepper(network, width, largest):
    net = nn.Sequential(*network())
    adam = torch.optim.Adam(net.parameters(), lr=0.001)
    rows = torch.rand(largest, width)

    def step(size):
        adam.zero_grad()
        loss = nn.functional.mse_loss(net(rows[:size]), rows[:size])
        loss.backward()
        adam.step()
        return loss.detach().numpy()

    return step


result(measured(stepper, six, five, int(sys.argv[1]), int(sys.argv[2])))
