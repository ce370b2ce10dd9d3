"""Training steps on one GPU with feeds that are there already. usage: gpu_fluid.py PLACE SECONDS NETWORK..."""

import sys

import numpy as np
import paddle.fluid as fluid
from gpu_networks import SIZES, STEPS, batch_of
from timing import blocks, result

layers = fluid.layers


def five(x):
    for layer in range(5):
        x = layers.fc(x, 8, act="relu" if layer < 4 else None)
    return x, fluid.optimizer.Adam(0.001)


def mlp(x):
    hidden = layers.fc(layers.fc(x, 200, act="relu"), 100, act="relu")
    return layers.fc(hidden, 10), fluid.optimizer.SGD(0.01)


def lenet(x):
    for filters in (20, 50):
        x = layers.conv2d(x, filters, 5, act="relu")
        x = layers.batch_norm(layers.pool2d(x, 2, "max", 2))
    return layers.fc(x, 10), fluid.optimizer.Momentum(0.01, 0.9)


def convolved(x, filters, size, stride=1, act="relu"):
    x = layers.conv2d(x, filters, size, stride, (size - 1) // 2, bias_attr=False)
    return layers.batch_norm(x, act=act)


def shortcut(x, filters, stride):
    return x if stride == 1 and x.shape[1] == filters else convolved(x, filters, 1, stride, None)


def basic(x, filters, stride):
    out = convolved(convolved(x, filters, 3, stride), filters, 3, act=None)
    return layers.elementwise_add(shortcut(x, filters, stride), out, act="relu")


def bottleneck(x, filters, stride):
    out = convolved(convolved(x, filters, 1), filters, 3, stride)
    return layers.elementwise_add(
        shortcut(x, 4 * filters, stride), convolved(out, 4 * filters, 1, act=None), act="relu"
    )


def resnet(x, block, stages):
    for filters, count, first in stages:
        for k in range(count):
            x = block(x, filters, first if k == 0 else 1)
    return layers.pool2d(x, pool_type="avg", global_pooling=True)


def resnet20(x):
    x = resnet(convolved(x, 16, 3), basic, [(16, 3, 1), (32, 3, 2), (64, 3, 2)])
    return layers.fc(x, 10), fluid.optimizer.Momentum(0.1, 0.9)


def resnet50(x):
    x = layers.pool2d(convolved(x, 64, 7, 2), 3, "max", 2, 1)
    x = resnet(x, bottleneck, [(64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)])
    return layers.fc(x, 1000), fluid.optimizer.Momentum(0.1, 0.9)


NETWORKS = {"five 8x8": five, "mlp": mlp, "lenet": lenet, "resnet-20": resnet20, "resnet-50": resnet50}
place = fluid.CPUPlace() if sys.argv[1] == "cpu" else fluid.CUDAPlace(0)
metrics = {}
for name in sys.argv[3:]:
    sizes = SIZES[name]
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x = fluid.data("x", [None, *sizes.shape], "float32")
        y = fluid.data(
            "y", [None, 1] if sizes.classes else [None, 8], "int64" if sizes.classes else "float32"
        )
        out, optimizer = NETWORKS[name](x)
        cost = (
            layers.softmax_with_cross_entropy(out, y) if sizes.classes else layers.square_error_cost(out, y)
        )
        loss = layers.reduce_mean(cost)
        optimizer.minimize(loss)
    exe = fluid.Executor(place)
    with fluid.scope_guard(fluid.Scope()):
        exe.run(startup)
        feed = {}
        for key, array in zip(("x", "y"), batch_of(np, sizes)):
            feed[key] = fluid.LoDTensor()
            feed[key].set(array, place)

        def queued(count):
            for _ in range(count - 1):
                exe.run(main, feed=feed)
            exe.run(main, feed=feed, fetch_list=[loss])

        seconds = float(sys.argv[2])
        metrics[name] = blocks(lambda: queued(1), seconds)
        many = blocks(lambda: queued(STEPS), seconds)
        metrics[f"{name}, loss every {STEPS} steps"] = [value / STEPS for value in many]
result(metrics)
