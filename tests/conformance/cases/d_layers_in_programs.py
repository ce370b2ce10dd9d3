"""Layers made and called while a program is built: their parameters and statistics belong to the program."""
from collections import OrderedDict

import numpy as np
import paddle.fluid as fluid
from paddle.fluid.dygraph import BatchNorm, Conv2D, Embedding, LayerList, Linear, Pool2D, Sequential


class Net(fluid.dygraph.Layer):
    def __init__(self):
        super(Net, self).__init__()
        self.conv = Conv2D(2, 3, 3, act='relu', bias_attr=fluid.ParamAttr(name='conv_shift'))
        self.norm = BatchNorm(3, momentum=0.8)
        self.pool = Pool2D(2, 'avg', 2)
        self.table = Embedding([7, 4])
        self.mix = self.create_parameter([12, 4], attr=fluid.ParamAttr(initializer=fluid.initializer.Constant(0.25)))
        self.add_parameter('shift', self.create_parameter([4], is_bias=True))
        self.blocks = LayerList([Linear(4, 4, act='tanh') for _ in range(2)])
        self.head = Sequential(Linear(4, 3), Linear(3, 1, bias_attr=False))

    def forward(self, image, ids):
        x = self.pool(self.norm(self.conv(image)))
        x = fluid.layers.reshape(x, [-1, 12])
        x = fluid.layers.matmul(x, self.mix) + self.shift + self.table(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def build():
    image = fluid.data('image', [None, 2, 6, 6])
    ids = fluid.data('ids', [None], 'int64')
    net = Net()
    out = net(image, ids)
    loss = fluid.layers.mean(fluid.layers.square(out - 1.0))
    test = fluid.default_main_program().clone(for_test=True)
    fluid.optimizer.Momentum(0.1, 0.9, parameter_list=net.parameters()).minimize(loss)
    return OrderedDict(out=out, loss=loss, mean=net.norm._mean), test, OrderedDict(out=out)


def feeds(rng):
    return [
        {'image': rng.uniform(-1, 1, (4, 2, 6, 6)).astype('float32'), 'ids': rng.randint(0, 7, 4).astype('int64')}
        for _ in range(3)
    ]
