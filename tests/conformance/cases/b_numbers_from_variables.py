"""Variables and arrays where layers of programs take numbers: shapes, bounds of slices, sizes."""
from collections import OrderedDict

import numpy as np
import paddle.fluid as fluid
from paddle.fluid import layers


def build():
    x = fluid.data('x', [5, 4, 3])
    low, high = fluid.data('low', [1], 'int32'), fluid.data('high', [1], 'int32')
    wide = fluid.data('wide', [1], 'int64')
    sizes = fluid.data('sizes', [2], 'int32')
    two = np.array([2])
    out = OrderedDict()
    out['to_high'], out['from_low'], out['between'] = x[:high], x[low:], x[low:high]
    out['corner'], out['row_part'], out['mixed'] = x[:high, low:], x[low, :high], x[low:high, 1:, 2]
    out['but_last'] = x[low:-1]
    out['by_array'] = x[two, np.array([1]):]
    out['zeros'], out['ones'] = layers.zeros([wide, 2], 'float32'), layers.ones((np.array([3]), 1), 'int64')
    out['full'] = layers.fill_constant([wide, high], 'float32', 1.5)
    out['floats'] = layers.fill_constant([2.0, 3.7], 'float32', 1.5)
    out['sliced'] = layers.slice(x, [0, 1], [low, 0], [high, 2])
    out['reshaped'] = layers.reshape(x, [high, -1])
    flat = layers.fill_constant([6], 'float32', 2.)
    out['actual_shape'] = layers.reshape(flat, [3, 2], actual_shape=sizes)
    out['cropped'] = layers.crop_tensor(x, shape=[high, 2, 2], offsets=[low, 0, 1])
    out['range'] = layers.range(0, wide, 1, 'int64')
    out['reduced'] = layers.reduce_sum(x, two)
    out['parts'] = layers.concat(layers.split(x, [2, -1, high], 0), 0)
    out['padded'] = layers.pad(x, [0, 0, 0, 0, np.int64(1), two])
    return out


def feeds(rng):
    return [
        {'x': rng.uniform(-1, 1, (5, 4, 3)).astype('float32'), 'low': np.array([low], 'int32'),
         'high': np.array([high], 'int32'), 'wide': np.array([wide], 'int64'), 'sizes': np.array(sizes, 'int32')}
        for low, high, wide, sizes in ((1, 2, 3, (2, 3)), (1, 2, 5, (3, 2)), (1, 2, 2, (6, 1)))
    ]
