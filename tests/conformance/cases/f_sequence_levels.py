"""Sequence operators over no level, one, two and three levels of sequences: results, errors, whose sequences they carry."""
from collections import OrderedDict

import numpy as np
import paddle.fluid as fluid

LOD = True
layers = fluid.layers
LENGTHS = OrderedDict([
    ('plain', [None, None]),
    ('one', [[[2, 0, 4]], [[4, 2, 2]]]),
    ('two', [[[1, 2], [2, 0, 4]], [[2, 0, 1], [2, 4, 2]]]),
    ('three', [[[1, 1], [1, 2], [2, 0, 4]], [[2, 0], [1, 2], [4, 2, 2]]]),
])
THREES = [[[1, 2], [1, 3, 0], [2, 1, 0, 4]], [[2, 1], [2, 0, 2], [1, 0, 3, 4]]]


def tensor(array, lengths=None):
    made = fluid.LoDTensor()
    made.set(array, fluid.CPUPlace())
    if lengths:
        made.set_recursive_sequence_lengths(lengths)
    return made


def data(name, shape, dtype='float32', lod_level=1):
    made = fluid.data(name, shape, dtype, lod_level=lod_level)
    made.stop_gradient = dtype != 'float32'
    return made


def numbers(*values):
    return layers.assign(np.array(values).reshape(-1, 1))


def erased(x):
    ids = data('ids', [None, 1], 'int64')
    block = fluid.default_main_program().global_block()
    out = block.create_var(name='erased', dtype='int64')
    block.append_op(type='sequence_erase', inputs={'X': [ids]}, outputs={'Out': [out]}, attrs={'tokens': [1, 4]})
    return [x, out]


def scattered(x):
    ids = data('ids', [None, 1], 'int64')
    return layers.sequence_scatter(layers.scale(data('wide', [None, 8]), 1.), ids, layers.reduce_sum(x, dim=1, keep_dim=True))


LAYERS = OrderedDict([
    ('reshape4', lambda x: layers.sequence_reshape(x, 4)),
    ('reshape1', lambda x: layers.sequence_reshape(x, 1)),
    ('pad', lambda x: layers.sequence_pad(x, layers.fill_constant([1], 'float32', 9.))),
    ('pad5', lambda x: layers.sequence_pad(x, layers.assign(np.array([8, 9], 'float32')), maxlen=5)),
    ('slice', lambda x: layers.sequence_slice(x, numbers(1, 0, 1), numbers(1, 0, 1))),
    ('append', lambda x: layers.lod_append(x, [0, 1, 1, 6])),
    ('reset', lambda x: layers.lod_reset(x, y=data('y', [None, 1]))),
    ('expand', lambda x: layers.sequence_expand(x, data('y', [None, 1]))),
    ('expand_as', lambda x: layers.sequence_expand_as(x, data('y', [None, 1]))),
    ('erase', erased),
    ('scatter', scattered),
])


def results(name, build, feeds, out):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x = layers.scale(data('x', [None, 2]), 1.)
        made = build(x)
        made = list(made) if isinstance(made, (list, tuple)) else [made]
        fluid.backward.append_backward(layers.reduce_sum(layers.square(made[0])))
        fetches = made + [x.name + '@GRAD']
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(startup)
    for step, feed in enumerate(feeds):
        try:
            got = exe.run(main, feed=feed, fetch_list=fetches, return_numpy=False)
            out.update(('%s_%d_%d' % (name, step, k), value) for k, value in enumerate(got))
        except Exception as error:
            out['%s_%d' % (name, step)] = 'raised ' + type(error).__name__


def run(rng):
    out = OrderedDict()
    rows = [rng.uniform(-1, 1, (n, 2)).astype('float32') for n in (6, 8)]
    for kind, lengths in LENGTHS.items():
        feeds = [{'x': tensor(array, each), 'y': tensor(array[:, :1].copy(), each), 'wide': np.ones((3, 8), 'float32'),
                  'ids': tensor(np.arange(len(array)).reshape(-1, 1), each)} for array, each in zip(rows, lengths)]
        for name, build in LAYERS.items():
            needed = {'reset': 'xy', 'expand': 'xy', 'expand_as': 'xy', 'erase': ['x', 'ids'], 'scatter': ['x', 'wide', 'ids']}
            results('%s_%s' % (name, kind), build, [{k: feed[k] for k in needed.get(name, 'x')} for feed in feeds], out)
    # A plain X, and one of one level, repeated as each level of another says.
    for level in (-1, 0, 1, 2, 3):
        for own in (False, True):
            feeds = []
            for deep in THREES:
                count = len(deep[min(level, 2)])
                sizes = [[2, 0, 1, 3][:count]] if own else None
                array = rng.uniform(-1, 1, (sum(sizes[0]) if own else count, 2)).astype('float32')
                feeds.append({'x': tensor(array, sizes), 'y': tensor(np.ones((sum(deep[2]), 1), 'float32'), deep)})
            build = lambda x: layers.sequence_expand(x, data('y', [None, 1]), ref_level=level)
            results('expand_by_%d_%s' % (level, 'one' if own else 'plain'), build, feeds, out)
    return out
