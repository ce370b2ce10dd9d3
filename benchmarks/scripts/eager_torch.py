"""The smallest step of eager_fluid.py in PyTorch's eager mode. usage: eager_torch.py SECONDS NETWORK"""

import sys

import torch
from timing import blocks, result


def stepper(net, loss_function, x, y):
    adam = torch.optim.Adam(net.parameters(), lr=0.001)

    def step():
        adam.zero_grad()
        loss = loss_function(net(x), y)
        loss.backward()
        adam.step()
        return loss.detach().numpy()

    return step


seconds = float(sys.argv[1])
layers = []
for layer in range(5):
    layers += [torch.nn.Linear(8, 8), *([torch.nn.ReLU()] if layer < 4 else [])]
deep = stepper(torch.nn.Sequential(*layers), torch.nn.functional.mse_loss, torch.rand(4, 8), torch.rand(4, 8))
result({sys.argv[2]: blocks(deep, seconds)})
