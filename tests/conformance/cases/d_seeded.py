"""Seeded initialisation and dropout under the guard."""

from collections import OrderedDict

import numpy as np
import paddle.fluid as fluid
from paddle.fluid import layers
from paddle.fluid.dygraph import *
from paddle.fluid.dygraph import to_variable
from case_parts import put


def run_dygraph(rng):
    out = OrderedDict()
    fluid.default_startup_program().random_seed = 90
    fluid.default_main_program().random_seed = 90
    init = fluid.initializer
    makes = [
        ('linear', lambda: Linear(4, 3)),
        ('conv', lambda: Conv2D(3, 4, 3)),
        ('convt', lambda: Conv2DTranspose(3, 2, 3)),
        ('conv3', lambda: Conv3D(1, 2, 2)),
        ('conv3t', lambda: Conv3DTranspose(1, 2, 2)),
        ('emb', lambda: Embedding([5, 3])),
        ('bn', lambda: BatchNorm(3)),
        ('gru', lambda: GRUUnit(6)),
        ('bil', lambda: BilinearTensorProduct(2, 2, 2)),
        ('sn', lambda: SpectralNorm([2, 3])),
        ('nce', lambda: NCE(5, 3)),
        ('tree', lambda: TreeConv(2, 2)),
        ('prelu', lambda: PRelu('all')),
        ('ln', lambda: LayerNorm(3)),
        ('gn', lambda: GroupNorm(4, 2)),
        ('in', lambda: InstanceNorm(3)),
    ] + [
        (
            k,
            (
                lambda i: (
                    lambda: Linear(
                        4, 3, param_attr=fluid.ParamAttr(initializer=i), bias_attr=fluid.ParamAttr(initializer=init.Uniform(-1, 1, seed=3))
                    )
                )
            )(i),
        )
        for k, i in (
            ('normal', init.Normal(0.0, 2.0)),
            ('trunc', init.TruncatedNormal(0.0, 1.0)),
            ('uniform', init.Uniform(-2, 2)),
            ('xavier', init.Xavier()),
            ('xaviern', init.Xavier(uniform=False)),
            ('msra', init.MSRA()),
            ('msran', init.MSRA(uniform=False)),
            ('seeded', init.Normal(seed=5)),
            ('const', init.Constant(2.0)),
            ('np', init.NumpyArrayInitializer(np.arange(12).reshape(4, 3).astype('float32'))),
        )
    ]
    makes.append(
        ('bilinear', lambda: Conv2DTranspose(2, 2, 4, groups=2, stride=2, param_attr=fluid.ParamAttr(initializer=init.Bilinear())))
    )
    for label, make in makes:

        def go():
            net = make()
            for k, p in net.state_dict().items():
                out[label + '_' + k] = p.numpy()
            return 'ok'

        put(out, label, go)
    x = to_variable(np.ones((4, 5), 'float32'))
    put(out, 'dropout_seeded', lambda: layers.dropout(x, 0.5, seed=7))
    put(out, 'dropout_seeded2', lambda: layers.dropout(x, 0.5, seed=7))
    put(out, 'dropout_prog', lambda: layers.dropout(x, 0.5))
    put(out, 'dropout_prog2', lambda: layers.dropout(x, 0.5))
    d = Dropout(0.4)
    put(out, 'Dropout', lambda: d(x))
    put(out, 'Dropout2', lambda: d(x))
    d.eval()
    put(out, 'Dropout_eval', lambda: d(x))
    d.train()
    put(out, 'dropout_test', lambda: layers.dropout(x, 0.5, is_test=True))
    put(out, 'dropout_up', lambda: layers.dropout(x, 0.5, seed=3, dropout_implementation='upscale_in_train'))
    put(out, 'uniform_random', lambda: layers.uniform_random([3, 2], seed=4))
    put(out, 'gaussian', lambda: layers.gaussian_random([3, 2], seed=4))
    put(out, 'randint', lambda: layers.randint(0, 9, [6], seed=4) if hasattr(layers, 'randint') else None)
    put(out, 'uniform_bsl', lambda: layers.uniform_random_batch_size_like(x, [-1, 3], seed=2))
    put(out, 'gauss_bsl', lambda: layers.gaussian_random_batch_size_like(x, [-1, 3], seed=2))
    put(out, 'randperm', lambda: layers.shape(fluid.layers.argsort(layers.uniform_random([6], seed=1))[1]))
    put(out, 'create_parameter', lambda: layers.create_parameter([2, 2], 'float32'))
    put(out, 'create_global_var', lambda: layers.create_global_var([2], 3.0, 'float32'))
    put(out, 'sampling_id', lambda: layers.sampling_id(to_variable(np.full((3, 4), 0.25, 'float32')), seed=5))
    return out
