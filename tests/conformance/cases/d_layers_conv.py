"""Layers of dygraph.nn with several options: convolution, pooling, linear."""

from collections import OrderedDict

import numpy as np
from paddle.fluid import layers
from paddle.fluid.dygraph import *
from paddle.fluid.dygraph import to_variable
from case_parts import leaf, put, setp, value


def run_dygraph(rng):
    out = OrderedDict()
    img = lambda c, s=6: leaf(rng.uniform(-1, 1, (2, c, s, s)))
    vol = lambda c, s=4: leaf(rng.uniform(-1, 1, (2, c, s, s, s)))
    made = [
        ('conv', lambda: Conv2D(3, 4, 3), lambda: img(3)),
        ('conv_s', lambda: Conv2D(3, 4, [3, 2], stride=[2, 1], padding=[1, 0], act='sigmoid'), lambda: img(3)),
        ('conv_g', lambda: Conv2D(4, 6, 3, groups=2, dilation=2, padding=2, bias_attr=False), lambda: img(4)),
        ('conv_dw', lambda: Conv2D(4, 4, 3, groups=4, use_cudnn=False, act='relu'), lambda: img(4)),
        ('convt', lambda: Conv2DTranspose(3, 2, 3), lambda: img(3)),
        ('convt_s', lambda: Conv2DTranspose(4, 2, 3, stride=2, padding=1, groups=2, act='tanh'), lambda: img(4)),
        ('convt_o', lambda: Conv2DTranspose(3, 2, 3, output_size=[13, 13], stride=2), lambda: img(3)),
        ('conv3', lambda: Conv3D(2, 3, 2, padding=1, act='relu'), lambda: vol(2)),
        ('conv3t', lambda: Conv3DTranspose(2, 3, 2, stride=2, bias_attr=False), lambda: vol(2)),
        ('pool', lambda: Pool2D(2, 'max', 2), lambda: img(2)),
        ('pool_a', lambda: Pool2D(3, 'avg', 2, 1), lambda: img(2)),
        ('pool_i', lambda: Pool2D(3, 'avg', 2, 1, exclusive=False), lambda: img(2)),
        ('pool_c', lambda: Pool2D([3, 2], 'max', 2, ceil_mode=True), lambda: img(2, 7)),
        ('pool_g', lambda: Pool2D(pool_type='avg', global_pooling=True), lambda: img(2)),
        ('pool_bad', lambda: Pool2D(2, 'median'), lambda: img(2)),
        ('pool_bad2', lambda: Pool2D(), lambda: img(2)),
        ('conv_bad', lambda: Conv2D(3, 4, 3, groups=2), lambda: img(3)),
        ('conv_bad3', lambda: Conv2D(3, 4, 3, use_cudnn=3), lambda: img(3)),
        ('conv_bad4', lambda: Conv2D(3, 4, 3, groups=2), lambda: img(4)),
        ('conv_badin', lambda: Conv2D(3, 4, 3), lambda: img(2)),
        ('linear', lambda: Linear(4, 3, act='relu'), lambda: leaf(rng.uniform(-1, 1, (2, 5, 4)))),
        ('linear_nb', lambda: Linear(4, 3, bias_attr=False), lambda: leaf(rng.uniform(-1, 1, (5, 4)))),
        ('linear_bad', lambda: Linear(4, 3), lambda: leaf(rng.uniform(-1, 1, (5, 3)))),
        ('linear_64', lambda: Linear(4, 3, dtype='float64'), lambda: to_variable(rng.uniform(-1, 1, (5, 4)))),
        ('linear_np', lambda: Linear(4, 3), lambda: rng.uniform(-1, 1, (5, 4)).astype('float32')),
        ('bilinear', lambda: BilinearTensorProduct(3, 3, 4, act='tanh'), None),
        ('dropout', lambda: Dropout(0.5, seed=7), lambda: leaf(rng.uniform(-1, 1, (4, 5)))),
        ('dropout_up', lambda: Dropout(0.3, seed=3, dropout_implementation='upscale_in_train'), lambda: leaf(rng.uniform(-1, 1, (4, 5)))),
        ('dropout_bad', lambda: Dropout(1.5), lambda: leaf(rng.uniform(-1, 1, (4, 5)))),
        ('dropout_bad2', lambda: Dropout(0.5, dropout_implementation='x'), lambda: leaf(rng.uniform(-1, 1, (4, 5)))),
        ('flatten', lambda: Flatten(), lambda: img(2)),
        ('prelu_all', lambda: PRelu('all'), lambda: img(2)),
        ('prelu_c', lambda: PRelu('channel', channel=2), lambda: img(2)),
        ('prelu_e', lambda: PRelu('element', input_shape=[2, 2, 6, 6]), lambda: img(2)),
        ('prelu_bad', lambda: PRelu('x'), lambda: img(2)),
        ('prelu_bad2', lambda: PRelu('channel'), lambda: img(2)),
    ]
    for label, make, data in made:

        def go():
            net = make()
            setp(net, rng)
            args = [data()] if data else [leaf(rng.uniform(-1, 1, (2, 3))), leaf(rng.uniform(-1, 1, (2, 3)))]
            y = net(*args)
            loss = layers.reduce_sum(layers.square(y) * 0.5)
            loss.backward()
            out[label + '_names'] = ['%s %s %s %s' % (k, p.name, p.shape, p.dtype) for k, p in net.named_parameters()] or 'none'
            if not isinstance(args[0], np.ndarray):
                out[label + '_dx'] = value(args[0].gradient())
            for k, p in net.named_parameters():
                out[label + '_d_' + k] = value(p.gradient())
            net.eval()
            z = net(*args)
            net.train()
            out[label + '_eval'] = z.numpy()
            out[label + "_full"] = net.full_name()
            out[label + '_stop'] = [str(y.stop_gradient), str(z.stop_gradient)]
            return y

        put(out, label, go)
    return out
