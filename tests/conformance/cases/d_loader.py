"""DataLoader.from_generator in dygraph: sample, sample_list, batch; multiprocess."""

from collections import OrderedDict

import numpy as np
import paddle
import paddle.fluid as fluid
from case_parts import put, value


def run_dygraph(rng):
    out = OrderedDict()
    data = [(rng.rand(3).astype('float32'), np.array([k], 'int64')) for k in range(7)]

    def sample():
        for d in data:
            yield d

    def batches():
        for k in range(3):
            yield np.full((2, 3), k, 'float32'), np.full((2, 1), k, 'int64')

    place = fluid.CPUPlace()
    for label, mp in (('', False), ('mp_', True)):

        def loader(**kw):
            return fluid.io.DataLoader.from_generator(capacity=4, use_multiprocess=mp, **kw)

        tests = [
            ('sample', lambda: loader().set_sample_generator(sample, 2, places=place)),
            ('sample_all', lambda: loader().set_sample_generator(sample, 2, drop_last=False, places=place)),
            ('list', lambda: loader().set_sample_list_generator(paddle.batch(sample, 3), places=place)),
            ('list_drop', lambda: loader().set_sample_list_generator(paddle.batch(sample, 3, drop_last=True), places=place)),
            ('batch', lambda: loader().set_batch_generator(batches, places=place)),
            ('noplace', lambda: loader().set_batch_generator(batches)),
            ('return_list', lambda: loader(return_list=False).set_batch_generator(batches, places=place)),
            ('buffer', lambda: loader(use_double_buffer=False).set_batch_generator(batches, places=[place])),
        ]
        for name, make in tests:

            def go():
                l = make()
                seen = []
                for epoch in range(2):
                    for b in l():
                        seen.append(
                            '%s %d %s %s %s %s'
                            % (type(b).__name__, len(b), type(b[0]).__name__, b[0].shape, b[1].dtype, b[1].stop_gradient)
                        )
                        last = b
                out[label + name + '_last'] = value(last[0])
                out[label + name + '_last1'] = value(last[1])
                return seen

            put(out, label + name, go)
    put(out, 'nocap', lambda: fluid.io.DataLoader.from_generator())
    put(out, 'pyreader', lambda: fluid.io.PyReader(capacity=2).decorate_batch_generator(batches, place))
    r = fluid.io.PyReader(capacity=2, return_list=True)
    put(out, 'pyreader2', lambda: r.decorate_sample_list_generator(paddle.batch(sample, 2), place))
    put(out, 'pyreader_it', lambda: [str(b[0].shape) for b in r()])
    put(out, 'len', lambda: len(fluid.io.DataLoader.from_generator(capacity=2)))
    return out
