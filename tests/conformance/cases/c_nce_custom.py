"""nce with custom_dist: the alias table and the classes drawn."""

from collections import OrderedDict

import numpy as np
import paddle.fluid as fluid
from paddle.fluid import layers


def run(rng):
    out = OrderedDict()
    for k, probs in enumerate(([0.1, 0.2, 0.3, 0.4], [0.7, 0.1, 0.1, 0.1], [0.05, 0.4, 0.05, 0.3, 0.2], [0.125] * 8)):
        main, startup = fluid.Program(), fluid.Program()
        with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(fluid.Scope()):
            x, y = fluid.data('x', [None, 3], 'float32'), fluid.data('y', [None, 1], 'int64')
            cost = layers.nce(x, y, len(probs), num_neg_samples=6, sampler='custom_dist', custom_dist=probs, seed=k + 3)
            exe = fluid.Executor(fluid.CPUPlace())
            exe.run(startup)
            op = [o for o in main.global_block().ops if o.type == 'nce'][0]
            get = lambda name: np.array(fluid.global_scope().find_var(name).get_tensor())
            out['alias%d' % k], out['own%d' % k] = get(op.input('CustomDistAlias')[0]), get(op.input('CustomDistAliasProbs')[0])
            fluid.global_scope().find_var(op.input('Weight')[0]).get_tensor().set(
                rng.uniform(-1, 1, (len(probs), 3)).astype('float32'), fluid.CPUPlace()
            )
            feed = {'x': rng.uniform(-1, 1, (2, 3)).astype('float32'), 'y': np.array([[1], [3]], 'int64')}
            out['cost%d' % k], out['drawn%d' % k] = exe.run(main, feed=feed, fetch_list=[cost, op.output('SampleLabels')[0]])
    return out
