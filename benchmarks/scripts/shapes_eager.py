"""Batch sizes that change, in dygraph mode. usage: shapes_eager.py SIZES PASSES"""

import sys

import numpy as np
import paddle.fluid as fluid
from paddle.fluid.dygraph import BatchNorm, Linear, Sequential, to_variable
from shapes_order import measured
from timing import result


def six():
    return Sequential(*[layer for _ in range(6) for layer in (Linear(64, 64, act="relu"), BatchNorm(64))])


def five():
    return Sequential(*[Linear(8, 8, act="relu" if k < 4 else None) for k in range(5)])


def stepper(network, width, largest):
    net = network()
    adam = fluid.optimizer.Adam(0.001, parameter_list=net.parameters())
    rows = np.random.RandomState(0).rand(largest, width).astype("float32")

    def step(size):
        x = to_variable(rows[:size])
        loss = fluid.layers.reduce_mean(fluid.layers.square_error_cost(net(x), x))
        loss.backward()
        adam.minimize(loss)
        net.clear_gradients()
        return loss.numpy()

    return step


with fluid.dygraph.guard(fluid.CPUPlace()):
    result(measured(stepper, six, five, int(sys.argv[1]), int(sys.argv[2])))
