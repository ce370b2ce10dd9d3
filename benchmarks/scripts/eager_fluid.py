"""Training steps in dygraph mode, for fluidlite and Paddle 1.8.5. usage: eager_fluid.py SECONDS NETWORK..."""

import sys

import numpy as np
import paddle.fluid as fluid
from models_data import HEADS, LAYERS, WIDTH, batch_of
from paddle.fluid.dygraph import BatchNorm, Conv2D, LayerNorm, Linear, Pool2D, Sequential, to_variable
from timing import blocks, result

layers = fluid.layers


class Deep(fluid.dygraph.Layer):
    """Five 8 x 8 linear layers, relu between them."""

    def __init__(self):
        super(Deep, self).__init__()
        self.body = Sequential(*[Linear(8, 8, act="relu" if k < 4 else None) for k in range(5)])

    def forward(self, x, y):
        return layers.mean(layers.square_error_cost(self.body(x), y))


class Classifier(fluid.dygraph.Layer):
    """The cross entropy of what its parts make of x, the last of them fully connected."""

    def __init__(self, *parts):
        super(Classifier, self).__init__()
        self.body, self.last = Sequential(*parts[:-1]), parts[-1]

    def forward(self, x, y):
        x = self.body(x)
        logits = self.last(layers.reshape(x, [x.shape[0], -1]))
        return layers.mean(layers.softmax_with_cross_entropy(logits, y))


class Image(fluid.dygraph.Layer):
    """Rows of 784 as images."""

    def forward(self, x):
        return layers.reshape(x, [-1, 1, 28, 28])


def lenet():
    parts, channels = [Image()], 1
    for filters in (20, 50):
        parts += [Conv2D(channels, filters, 5, act="relu"), Pool2D(2, "max", 2), BatchNorm(filters)]
        channels = filters
    return Classifier(*parts, Linear(800, 10))


def convolved(channels, filters, size, stride=1, act="relu"):
    conv = Conv2D(channels, filters, size, stride, (size - 1) // 2, bias_attr=False)
    return Sequential(conv, BatchNorm(filters, act=act))


class Basic(fluid.dygraph.Layer):
    """A block of ResNet-20."""

    def __init__(self, channels, filters, stride):
        super(Basic, self).__init__()
        last = convolved(filters, filters, 3, act=None)
        self.way = Sequential(convolved(channels, filters, 3, stride), last)
        same = stride == 1 and channels == filters
        self.short = None if same else convolved(channels, filters, 1, stride, None)

    def forward(self, x):
        return layers.elementwise_add(x if self.short is None else self.short(x), self.way(x), act="relu")


def resnet20():
    parts, channels = [convolved(3, 16, 3)], 16
    for filters, first in ((16, 1), (32, 2), (64, 2)):
        for k in range(3):
            parts.append(Basic(channels, filters, first if k == 0 else 1))
            channels = filters
    return Classifier(*parts, Pool2D(pool_type="avg", global_pooling=True), Linear(64, 10))


class Encoding(fluid.dygraph.Layer):
    """A layer of an encoder."""

    def __init__(self):
        super(Encoding, self).__init__()
        self.query, self.key, self.value, self.mixed = (Linear(WIDTH, WIDTH) for _ in range(4))
        self.first, self.second = LayerNorm(WIDTH), LayerNorm(WIDTH)
        self.wide = Sequential(Linear(WIDTH, 4 * WIDTH, act="relu"), Linear(4 * WIDTH, WIDTH))

    def heads(self, x):
        return layers.transpose(layers.reshape(x, [0, 0, HEADS, WIDTH // HEADS]), [0, 2, 1, 3])

    def forward(self, x):
        query, key, value = (self.heads(part(x)) for part in (self.query, self.key, self.value))
        scores = layers.matmul(query, key, transpose_y=True, alpha=(WIDTH // HEADS) ** -0.5)
        weights = layers.dropout(layers.softmax(scores), 0.1, dropout_implementation="upscale_in_train")
        mixed = layers.transpose(layers.matmul(weights, value), [0, 2, 1, 3])
        x = self.first(x + self.mixed(layers.reshape(mixed, [0, 0, WIDTH])))
        return self.second(x + self.wide(x))


class Mean(fluid.dygraph.Layer):
    """The mean of a text's words."""

    def forward(self, x):
        return layers.reduce_mean(x, dim=1)


def encoder():
    return Classifier(*[Encoding() for _ in range(LAYERS)], Mean(), Linear(WIDTH, 10))


def mlp():
    return Classifier(Linear(784, 200, act="relu"), Linear(200, 200, act="relu"), Linear(200, 10))


def stepper(net, optimizer, x, y):
    x, y = to_variable(x), to_variable(y)

    def step():
        loss = net(x, y)
        loss.backward()
        optimizer.minimize(loss)
        net.clear_gradients()
        return loss.numpy()

    return step


def adam(parameters, rate=0.001):
    return fluid.optimizer.Adam(rate, parameter_list=parameters)


def momentum(parameters):
    return fluid.optimizer.Momentum(0.01, 0.9, parameter_list=parameters)


def pixels(batch):
    random = np.random.RandomState(0)
    return random.rand(batch, 784).astype("float32"), random.randint(0, 10, (batch, 1)).astype("int64")


def batch(name):
    given = batch_of(name)
    return given["x"], given["y"]


SMALL = np.random.RandomState(0).rand(2, 4, 8).astype("float32")
NETWORKS = {
    "five 8x8, batch 4": (Deep, adam, lambda: SMALL),
    "softmax regression": (lambda: Classifier(Linear(784, 10)), adam, lambda: pixels(512)),
    "mlp": (mlp, lambda p: fluid.optimizer.SGD(0.01, parameter_list=p), lambda: pixels(64)),
    "lenet": (lenet, momentum, lambda: pixels(64)),
    "resnet-20": (resnet20, momentum, lambda: batch("resnet-20")),
    "encoder": (encoder, adam, lambda: batch("encoder")),
}
seconds = float(sys.argv[1])
metrics = {}
with fluid.dygraph.guard(fluid.CPUPlace()):
    for name in sys.argv[2:]:
        build, optimizer, data = NETWORKS[name]
        net = build()
        metrics[name] = blocks(stepper(net, optimizer(net.parameters()), *data()), seconds)
result(metrics)
