"""Layers of dygraph.nn: norms, embeddings, recurrent units, NCE, others."""

from collections import OrderedDict

import numpy as np
import paddle.fluid as fluid
from paddle.fluid import layers
from paddle.fluid.dygraph import *
from paddle.fluid.dygraph import to_variable
from case_parts import leaf, put, value


def run_dygraph(rng):
    out = OrderedDict()
    f = lambda *shape: lambda: [leaf(rng.uniform(-1, 1, shape))]
    made = [
        ('bn', lambda: BatchNorm(3), f(4, 3, 2, 2)),
        ('bn_test', lambda: BatchNorm(3, is_test=True), f(4, 3, 2, 2)),
        ('bn_stats', lambda: BatchNorm(3, trainable_statistics=True, act='relu', epsilon=1e-3), f(4, 3, 2, 2)),
        ('bn_nhwc', lambda: BatchNorm(3, data_layout='NHWC'), f(4, 2, 2, 3)),
        ('bn_2d', lambda: BatchNorm(3), f(4, 3)),
        (
            'bn_global',
            lambda: BatchNorm(3, use_global_stats=True, param_attr=fluid.ParamAttr(), bias_attr=fluid.ParamAttr()),
            f(4, 3, 2, 2),
        ),
        (
            'bn_names',
            lambda: BatchNorm(
                3,
                moving_mean_name='mm',
                moving_variance_name='mv',
                param_attr=fluid.ParamAttr(name='bw'),
                bias_attr=fluid.ParamAttr(name='bb'),
            ),
            f(4, 3),
        ),
        ('ln', lambda: LayerNorm([4]), f(3, 4)),
        ('ln2', lambda: LayerNorm([2, 4], epsilon=1e-3, act='relu'), f(3, 2, 4)),
        ('ln_i', lambda: LayerNorm(4, scale=False), f(3, 4)),
        ('ln_s', lambda: LayerNorm(4, shift=False), f(3, 4)),
        ('ln_bad', lambda: LayerNorm(3), f(3, 4)),
        ('in', lambda: InstanceNorm(3), f(2, 3, 4, 4)),
        ('gn', lambda: GroupNorm(4, 2), f(2, 4, 3, 3)),
        ('gn_act', lambda: GroupNorm(4, 4, act='relu', epsilon=1e-3), f(2, 4, 3, 3)),
        ('gn_nobias', lambda: GroupNorm(4, 2, bias_attr=False), f(2, 4, 3, 3)),
        ('gn_bad', lambda: GroupNorm(4, 2, data_layout='NHWC'), f(2, 3, 3, 4)),
        ('emb', lambda: Embedding([7, 3]), lambda: [to_variable(rng.randint(0, 7, (4, 1)).astype('int64'))]),
        ('emb2', lambda: Embedding([7, 3], padding_idx=-1), lambda: [to_variable(rng.randint(0, 7, (4, 2)).astype('int64'))]),
        ('emb_bad', lambda: Embedding([7, 3]), lambda: [to_variable(np.array([[9]], 'int64'))]),
        ('emb_f', lambda: Embedding([7, 3]), lambda: [to_variable(np.array([[2]], 'float32'))]),
        ('gru', lambda: GRUUnit(9), lambda: [leaf(rng.uniform(-1, 1, (2, 9))), leaf(rng.uniform(-1, 1, (2, 3)))]),
        (
            'gru_a',
            lambda: GRUUnit(9, activation='relu', gate_activation='tanh', bias_attr=False),
            lambda: [leaf(rng.uniform(-1, 1, (2, 9))), leaf(rng.uniform(-1, 1, (2, 3)))],
        ),
        (
            'nce_u',
            lambda: NCE(8, 5, num_neg_samples=3, seed=4),
            lambda: [leaf(rng.uniform(-1, 1, (4, 5))), to_variable(rng.randint(0, 8, (4, 1)).astype('int64'))],
        ),
        (
            'nce_log',
            lambda: NCE(8, 5, sampler='log_uniform', seed=4),
            lambda: [leaf(rng.uniform(-1, 1, (4, 5))), to_variable(rng.randint(0, 8, (4, 1)).astype('int64'))],
        ),
        (
            'nce_c',
            lambda: NCE(8, 5, sampler='custom_dist', custom_dist=[0.125] * 8, seed=4, bias_attr=False),
            lambda: [leaf(rng.uniform(-1, 1, (4, 5))), to_variable(rng.randint(0, 8, (4, 1)).astype('int64'))],
        ),
        (
            'tree',
            lambda: TreeConv(5, 6, num_filters=1, max_depth=2, bias_attr=False),
            lambda: [
                leaf(rng.rand(1, 10, 5)),
                to_variable(np.array([[[1, 2], [1, 3], [2, 4], [2, 5], [3, 6], [4, 7], [5, 8], [6, 9], [7, 10]]], 'int32')),
            ],
        ),
    ]
    for label, make, data in made:

        def go():
            net = make()
            for p in net.parameters():
                p.set_value(rng.uniform(0.1, 0.9, p.shape).astype('float64' if '64' in label else 'float32'))
            args = data()
            y = net(*args)
            y = y[0] if isinstance(y, tuple) else y
            layers.reduce_sum(layers.square(y) * 0.5).backward()
            out[label + '_names'] = [
                '%s %s %s %s %s' % (k, p.name, p.shape, p.stop_gradient, p.trainable) for k, p in net.named_parameters()
            ] or 'none'
            out[label + '_state'] = list(net.state_dict()) or 'none'
            out[label + '_dx'] = value(args[0].gradient())
            for k, p in net.named_parameters():
                out[label + '_d_' + k] = value(p.gradient())
            for k, p in net.state_dict().items():
                out[label + '_after_' + k] = p.numpy()
            net.eval()
            z = net(*args)
            net.train()
            z = z[0] if isinstance(z, tuple) else z
            out[label + '_eval'] = z.numpy()
            return y

        put(out, label, go)
    return out
