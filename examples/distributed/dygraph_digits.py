"""Handwritten digits in dygraph mode: each process scales its loss, and their gradients are added up.

usage: fluidlite launch -n 2 examples/distributed/dygraph_digits.py [STEPS]
"""

import itertools
import sys

import numpy as np
import paddle
import paddle.fluid as fluid
from paddle.fluid.dygraph import DataParallel, Linear, to_variable

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 100


class Net(fluid.dygraph.Layer):
    def __init__(self):
        super().__init__()
        self.hidden = Linear(784, 64, act="relu")
        self.out = Linear(64, 10, act="softmax")

    def forward(self, image):
        return self.out(self.hidden(image))


with fluid.dygraph.guard(fluid.CPUPlace()):
    strategy = fluid.dygraph.prepare_context()
    model = DataParallel(Net(), strategy)
    optimizer = fluid.optimizer.Adam(0.002, parameter_list=model.parameters())
    reader = fluid.contrib.reader.distributed_batch_reader(paddle.batch(paddle.dataset.mnist.train(), 32))
    for batch in itertools.islice(itertools.cycle(reader()), steps):
        image = to_variable(np.stack([sample[0] for sample in batch]))
        label = to_variable(np.array([[sample[1]] for sample in batch]))
        predicted = model(image)
        loss = fluid.layers.mean(fluid.layers.cross_entropy(predicted, label))
        accuracy = fluid.layers.accuracy(predicted, label)
        scaled = model.scale_loss(loss)
        scaled.backward()
        model.apply_collective_grads()
        optimizer.minimize(scaled)
        model.clear_gradients()
    print(f"loss {loss.numpy().item():.3f} accuracy {accuracy.numpy().item():.3f}")
