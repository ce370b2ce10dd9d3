"""The steps of eager_fluid.py in PyTorch's eager mode. usage: eager_torch.py SECONDS"""

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
metrics = {"five 8x8, batch 4": blocks(deep, seconds)}
images, labels = torch.rand(512, 784), torch.randint(0, 10, (512,))
softmax = stepper(torch.nn.Linear(784, 10), torch.nn.functional.cross_entropy, images, labels)
metrics["784-10, batch 512"] = blocks(softmax, seconds)
result(metrics)
