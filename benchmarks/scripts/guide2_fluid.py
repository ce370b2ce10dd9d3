"""Guide 2's models in dygraph mode, for fluidlite and Paddle 1.8.5. usage: guide2_fluid.py IMAGES EPOCHS NAME..."""

import inspect
import sys

import numpy as np
import paddle.fluid as fluid
from guide2_epochs import lists, measure
from guide2_sources import BATCH_SIZES, CLASSES, STEPS, WORDS
from paddle.fluid.dygraph import BatchNorm, Conv2D, Embedding, Linear, Pool2D, Sequential, to_variable

layers = fluid.layers


class Mnist(fluid.dygraph.Layer):
    """Two convolutions with pooling, one linear layer."""

    def __init__(self):
        super(Mnist, self).__init__()
        self.body = Sequential(
            Conv2D(1, 20, 5, act="relu"),
            Pool2D(2, "max", 2),
            Conv2D(20, 50, 5, act="relu"),
            Pool2D(2, "max", 2),
        )
        self.head = Linear(800, CLASSES)

    def forward(self, image):
        return self.head(layers.reshape(self.body(image), [-1, 800]))


def conv_norm(channels, filters, size, stride=1, groups=1, act="relu"):
    conv = Conv2D(channels, filters, size, stride, size // 2, groups=groups, bias_attr=False)
    return Sequential(conv, BatchNorm(filters, act=act))


class Excitation(fluid.dygraph.Layer):
    """Channels scaled by what their means say."""

    def __init__(self, channels):
        super(Excitation, self).__init__()
        self.pool = Pool2D(pool_type="avg", global_pooling=True)
        self.squeeze = Linear(channels, channels // 8, act="relu")
        self.excite = Linear(channels // 8, channels, act="sigmoid")
        self.channels = channels

    def forward(self, x):
        means = layers.reshape(self.pool(x), [-1, self.channels])
        return layers.elementwise_mul(x, self.excite(self.squeeze(means)), axis=0)


class Bottleneck(fluid.dygraph.Layer):
    """1x1, 3x3 and 1x1 convolutions beside a shortcut."""

    def __init__(self, channels, filters, stride, groups, excited):
        super(Bottleneck, self).__init__()
        wide = filters * (2 if excited else 4)
        parts = [
            conv_norm(channels, filters, 1),
            conv_norm(filters, filters, 3, stride, groups),
            conv_norm(filters, wide, 1, act=None),
        ]
        self.body = Sequential(*(parts + ([Excitation(wide)] if excited else [])))
        self.short = conv_norm(channels, wide, 1, stride, act=None)

    def forward(self, x):
        return layers.elementwise_add(self.short(x), self.body(x), act="relu")


class Images(fluid.dygraph.Layer):
    """Blocks, the mean over all places, a linear layer."""

    def __init__(self, blocks, channels):
        super(Images, self).__init__()
        self.body = Sequential(*blocks)
        self.pool = Pool2D(pool_type="avg", global_pooling=True)
        self.head = Linear(channels, CLASSES)
        self.channels = channels

    def forward(self, image):
        return self.head(layers.reshape(self.pool(self.body(image)), [-1, self.channels]))


def resnet():
    plan = [(16, 8, 1), (32, 16, 2), (64, 32, 2)]
    return Images([conv_norm(3, 16, 3, 2)] + [Bottleneck(c, f, s, 1, False) for c, f, s in plan], 128)


def se_resnext():
    plan = [(16, 16, 1), (32, 32, 2), (64, 64, 2)]
    return Images([conv_norm(3, 16, 3, 2)] + [Bottleneck(c, f, s, 8, True) for c, f, s in plan], 128)


def mobilenet():
    blocks, channels = [conv_norm(3, 8, 3, 2)], 8
    for filters, stride in ((16, 1), (32, 2), (32, 1), (64, 2), (64, 1)):
        blocks += [conv_norm(channels, channels, 3, stride, channels), conv_norm(channels, filters, 1)]
        channels = filters
    return Images(blocks, channels)


class Ptb(fluid.dygraph.Layer):
    """A word model: an LSTM written out step by step between an embedding and a linear layer."""

    def __init__(self, hidden=64):
        super(Ptb, self).__init__()
        self.table = Embedding([WORDS, hidden])
        self.gates = Linear(2 * hidden, 4 * hidden)
        self.head = Linear(hidden, WORDS)
        self.hidden = hidden

    def forward(self, words):
        embedded = layers.split(self.table(words), STEPS, 1)
        state = cell = to_variable(np.zeros((BATCH_SIZES["PTB"], self.hidden), "float32"))
        states = []
        for word in embedded:
            joined = layers.concat([layers.reshape(word, [-1, self.hidden]), state], 1)
            i, j, f, o = layers.split(self.gates(joined), 4, 1)
            cell = cell * layers.sigmoid(f + 1.0) + layers.sigmoid(i) * layers.tanh(j)
            state = layers.tanh(cell) * layers.sigmoid(o)
            states.append(state)
        return self.head(layers.reshape(layers.stack(states, 1), [-1, self.hidden]))


MODELS = {
    "MNIST": Mnist,
    "ResNet": resnet,
    "SE-ResNeXt": se_resnext,
    "PTB": Ptb,
    "MobileNet V1": mobilenet,
}


def trainer(model):
    net = MODELS[model]()
    optimizer = fluid.optimizer.Momentum(0.01, 0.9, parameter_list=net.parameters())

    def train(batch):
        x, y = batch
        loss = layers.mean(layers.softmax_with_cross_entropy(net(x), layers.reshape(y, [-1, 1])))
        loss.backward()
        optimizer.minimize(loss)
        net.clear_gradients()
        return loss.numpy()

    return train


def loader(reader, model, process, kept=False):
    options = {"persistent_workers": True} if kept else {}
    made = fluid.io.DataLoader.from_generator(capacity=8, use_multiprocess=process, **options)
    if model == "PTB":
        made.set_batch_generator(reader, places=fluid.CPUPlace())
    else:
        made.set_sample_list_generator(lists(reader, model), places=fluid.CPUPlace())
    return made


loader.keeps = "persistent_workers" in inspect.signature(fluid.io.DataLoader.from_generator).parameters
with fluid.dygraph.guard(fluid.CPUPlace()):
    measure(sys.argv[3:], int(sys.argv[1]), int(sys.argv[2]), trainer, loader)
