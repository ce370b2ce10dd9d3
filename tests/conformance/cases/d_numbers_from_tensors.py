"""Eager tensors, arrays and NumPy's numbers where layers of dygraph mode take numbers: sizes, shapes, axes, bounds."""
from collections import OrderedDict

import numpy as np
import paddle.fluid as fluid
from paddle.fluid import layers

REFUSED = [('int64', 'linspace'), ('int64', 'resize'), ('array', 'one_hot')]  # by real Paddle


def numbers(x, d):
    """Results of layers that are told `d`, which stands for 2."""
    image = layers.reshape(x, [1, 2, 3, 4])
    yield 'fill_constant', lambda: layers.fill_constant([d, 1], 'float32', 1.5)
    yield 'fill_constant_value', lambda: layers.fill_constant([2], 'float32', d)
    yield 'zeros', lambda: layers.zeros([d, 1], 'int64')
    yield 'ones', lambda: layers.ones((d, 1), 'float32')
    yield 'uniform_random', lambda: layers.shape(layers.uniform_random([d, 1]))
    yield 'batch_size_like', lambda: layers.fill_constant_batch_size_like(x, [d, 3], 'float32', 1.)
    yield 'create_global_var', lambda: layers.create_global_var([d, 3], 2., 'float32')
    yield 'create_parameter', lambda: layers.shape(layers.create_parameter([d, 3], 'float32'))
    yield 'range', lambda: layers.range(0, d, 1, 'int64')
    yield 'linspace', lambda: layers.linspace(0, 10, d, 'float32')
    yield 'topk', lambda: layers.topk(x, d)[0]
    yield 'one_hot', lambda: layers.one_hot(layers.fill_constant([2, 1], 'int64', 1), d)
    yield 'pad', lambda: layers.pad(x, [0, 0, 0, 0, 0, d])
    yield 'concat', lambda: layers.concat([x, x], d)
    yield 'reduce_sum', lambda: layers.reduce_sum(x, d)
    yield 'squeeze', lambda: layers.squeeze(layers.unsqueeze(x, [2]), [d])
    yield 'transpose', lambda: layers.transpose(x, [d, 0, 1])
    yield 'split', lambda: layers.split(x, 2, d)[1]
    yield 'scale', lambda: layers.scale(x, 1.0, d)
    yield 'resize', lambda: layers.resize_nearest(image, out_shape=[d, d])
    yield 'adaptive_pool2d', lambda: layers.adaptive_pool2d(image, [d, d])


def lists(x, s):
    """Results of layers that are told `s`, which stands for [2, 3]."""
    six = layers.fill_constant([6], 'float32', 1.)
    square = layers.reshape(layers.range(0, 16, 1, 'float32'), [4, 4])
    yield 'slice_axes', lambda: layers.slice(layers.reshape(x, [1, 2, 3, 4]), s, [0, 0], [1, 1])
    yield 'pad', lambda: layers.pad(six, s)
    yield 'actual_shape_is_ignored', lambda: layers.reshape(six, [3, 2], actual_shape=s)
    yield 'squeeze', lambda: layers.squeeze(layers.reshape(x, [4, 6, 1, 1]), s)
    yield 'unsqueeze', lambda: layers.unsqueeze(square, s)
    yield 'uniform_random', lambda: layers.shape(layers.uniform_random(s))


def run_dygraph(rng):
    out = OrderedDict()
    variable = fluid.dygraph.to_variable
    x = variable(np.arange(24, dtype='float32').reshape(2, 3, 4))
    for kind, d in (('int32', variable(np.array([2], 'int32'))), ('int64', variable(np.array([2], 'int64'))),
                    ('scalar', np.int64(2)), ('array', np.array([2]))):
        for name, result in numbers(x, d):
            if (kind, name) not in REFUSED:
                out['%s_%s' % (kind, name)] = result().numpy()
    for kind, s in (('tensor', variable(np.array([2, 3], 'int32'))), ('list', [np.int64(2), 3])):
        for name, result in lists(x, s):
            out['%s_%s' % (kind, name)] = result().numpy()
    for name, layer in (('zeros', layers.zeros), ('ones', layers.ones)):
        out['tensor_' + name] = layer(variable(np.array([2, 3], 'int64')), 'float32').numpy()
    out['whole_floats'] = layers.ones([2.0, 3.7], 'float32').numpy()
    out['loop'] = list(range(variable(np.array([2]))))
    a = rng.uniform(-1, 1, (2, 3)).astype('float32')
    half = fluid.initializer.Constant(0.5)
    out['fc_of_array'] = layers.fc(a, 2, param_attr=half).numpy()
    out['fc_of_arrays'] = layers.fc([a, a], 2, param_attr=half).numpy()
    out['diag_embed_of_array'], out['sign_of_array'] = layers.diag_embed(a).numpy(), layers.sign(a).numpy()
    out['minus_bool'] = (x - np.bool_(True)).numpy()
    return out
