"""Training steps of three networks. usage: networks_fluid.py SECONDS NETWORK..."""

import sys

import numpy as np
import paddle.fluid as fluid
from timing import blocks
from work import Work

layers = fluid.layers


def softmax_regression(image):
    return layers.fc(image, 10), fluid.optimizer.Adam(0.01), 512


def mlp(image):
    hidden = layers.fc(layers.fc(image, 200, act="relu"), 200, act="relu")
    return layers.fc(hidden, 10), fluid.optimizer.SGD(0.01), 64


def lenet(image):
    hidden = layers.reshape(image, [-1, 1, 28, 28])
    for filters in (20, 50):
        hidden = layers.conv2d(hidden, filters, 5, act="relu")
        hidden = layers.batch_norm(layers.pool2d(hidden, 2, "max", 2))
    return layers.fc(hidden, 10), fluid.optimizer.Momentum(0.01, 0.9), 64


NETWORKS = {"softmax regression": softmax_regression, "mlp": mlp, "lenet": lenet}
metrics, work = {}, Work()
for name in sys.argv[2:]:
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        image = fluid.data("image", [None, 784], "float32")
        label = fluid.data("label", [None, 1], "int64")
        logits, optimizer, batch = NETWORKS[name](image)
        loss = layers.reduce_mean(layers.softmax_with_cross_entropy(logits, label))
        optimizer.minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    with fluid.scope_guard(fluid.Scope()):
        exe.run(startup)
        random = np.random.RandomState(0)
        feed = {
            "image": random.rand(batch, 784).astype("float32"),
            "label": random.randint(0, 10, (batch, 1)).astype("int64"),
        }
        metrics[name] = blocks(lambda: exe.run(main, feed=feed, fetch_list=[loss]), float(sys.argv[1]))
        work.count(name, main, [feed])
work.result(metrics)
