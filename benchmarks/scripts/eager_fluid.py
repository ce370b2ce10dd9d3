"""Training steps in dygraph mode, for fluidlite and Paddle 1.8.5. usage: eager_fluid.py SECONDS"""

import sys

import numpy as np
import paddle.fluid as fluid
from paddle.fluid.dygraph import Linear, to_variable
from timing import blocks, result


class Deep(fluid.dygraph.Layer):
    """Five 8 x 8 linear layers, relu between them."""

    def __init__(self):
        super(Deep, self).__init__()
        self.body = fluid.dygraph.Sequential(*[Linear(8, 8, act="relu" if k < 4 else None) for k in range(5)])

    def forward(self, x, y):
        return fluid.layers.mean(fluid.layers.square_error_cost(self.body(x), y))


class Softmax(fluid.dygraph.Layer):
    """Softmax regression on 784 pixels."""

    def __init__(self):
        super(Softmax, self).__init__()
        self.linear = Linear(784, 10)

    def forward(self, x, y):
        return fluid.layers.mean(fluid.layers.softmax_with_cross_entropy(self.linear(x), y))


def stepper(net, x, y):
    adam = fluid.optimizer.Adam(0.001, parameter_list=net.parameters())
    x, y = to_variable(x), to_variable(y)

    def step():
        loss = net(x, y)
        loss.backward()
        adam.minimize(loss)
        net.clear_gradients()
        return loss.numpy()

    return step


seconds = float(sys.argv[1])
random = np.random.RandomState(0)
with fluid.dygraph.guard(fluid.CPUPlace()):
    deep = stepper(Deep(), random.rand(4, 8).astype("float32"), random.rand(4, 8).astype("float32"))
    metrics = {"five 8x8, batch 4": blocks(deep, seconds)}
    images, labels = random.rand(512, 784).astype("float32"), random.randint(0, 10, (512, 1)).astype("int64")
    metrics["784-10, batch 512"] = blocks(stepper(Softmax(), images, labels), seconds)
result(metrics)
