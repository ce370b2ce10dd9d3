"""Batch sizes that change. usage: shapes_fluid.py SIZES PASSES"""

import sys

import numpy as np
import paddle.fluid as fluid
from shapes_order import measured
from timing import result

layers = fluid.layers


def six(x):
    for _ in range(6):
        x = layers.batch_norm(layers.fc(x, 64, act="relu"))
    return x


def five(x):
    """Makes 45 operators with loss, gradients and Adam."""
    for layer in range(5):
        x = layers.fc(x, 8, act="relu" if layer < 4 else None)
    return x


def stepper(network, width, largest):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x, y = (fluid.data(name, [None, width], "float32") for name in "xy")
        loss = layers.reduce_mean(layers.square_error_cost(network(x), y))
        fluid.optimizer.Adam(0.001).minimize(loss)
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    exe.run(startup, scope=scope)
    rows = np.random.RandomState(0).rand(largest, width).astype("float32")

    def step(size):
        exe.run(main, feed={"x": rows[:size], "y": rows[:size]}, fetch_list=[loss], scope=scope)

    return step


result(measured(stepper, six, five, int(sys.argv[1]), int(sys.argv[2])))
