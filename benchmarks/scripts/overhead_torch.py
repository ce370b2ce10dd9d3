"""Five 8 x 8 linear layers with Adam, batch 4, eager; --compile adds torch.compile.

usage: overhead_torch.py SECONDS [--compile]
"""

import sys

import torch
from timing import blocks, result

x, y = torch.rand(4, 8), torch.rand(4, 8)
seconds = float(sys.argv[1])


def stepper(wrap):
    layers = []
    for layer in range(5):
        layers += [torch.nn.Linear(8, 8), *([torch.nn.ReLU()] if layer < 4 else [])]
    net = torch.nn.Sequential(*layers)
    adam = torch.optim.Adam(net.parameters(), lr=0.001)
    loss_of = wrap(lambda: torch.nn.functional.mse_loss(net(x), y))

    def step():
        adam.zero_grad()
        loss = loss_of()
        loss.backward()
        adam.step()
        return loss.detach().numpy()

    return step


metrics = {"step": blocks(stepper(lambda function: function), seconds)}
if "--compile" in sys.argv:
    metrics["step, torch.compile"] = blocks(stepper(torch.compile), seconds)
result(metrics)
