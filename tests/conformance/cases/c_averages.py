"""ExponentialMovingAverage, ModelAverage."""

from collections import OrderedDict

import numpy as np
import paddle.fluid as fluid
from paddle.fluid import layers
from case_parts import put


def run(rng):
    out = OrderedDict()
    L = layers
    for label, make in (
        ('ema', lambda: fluid.optimizer.ExponentialMovingAverage(0.9)),
        (
            'ema_t',
            lambda: fluid.optimizer.ExponentialMovingAverage(
                0.9, thres_steps=L.cast(L.autoincreased_step_counter('cnt'), 'float32'), name='t'
            ),
        ),
        ('ma', lambda: fluid.optimizer.ModelAverage(0.3, min_average_window=1, max_average_window=3)),
        ('ma2', lambda: fluid.optimizer.ModelAverage(0.15, min_average_window=2, max_average_window=12, name='n')),
    ):

        def go():
            main, startup = fluid.Program(), fluid.Program()
            with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(fluid.Scope()):
                x = fluid.data('x', [None, 3], 'float32')
                loss = L.reduce_mean(
                    L.square(
                        L.fc(x, 2, param_attr=fluid.ParamAttr(name='w'), bias_attr=fluid.ParamAttr(name='b', do_model_average=False)) - 1.0
                    )
                )
                fluid.optimizer.SGD(0.1).minimize(loss)
                avg = make()
                if label.startswith('ema'):
                    avg.update()
                exe = fluid.Executor(fluid.CPUPlace())
                exe.run(startup)
                scope = fluid.global_scope()
                get = lambda n: np.array(scope.find_var(n).get_tensor())
                scope.find_var('w').get_tensor().set(rng.uniform(-0.5, 0.5, (3, 2)).astype('float32'), fluid.CPUPlace())
                for i in range(5):
                    out['%s_loss%d' % (label, i)] = exe.run(
                        main, feed={'x': rng.uniform(-1, 1, (4, 3)).astype('float32')}, fetch_list=[loss]
                    )[0]
                    with avg.apply(exe):
                        out['%s_w%d' % (label, i)], out['%s_b%d' % (label, i)] = get('w'), get('b')
                    out['%s_rw%d' % (label, i)] = get('w')
                with avg.apply(exe, need_restore=False):
                    pass
                out[label + '_kept'] = get('w')
                avg.restore(exe)
                out[label + '_restored'] = get('w')
                out[label + '_vars'] = sorted(v.name for v in main.list_vars() if v.persistable)
                return 'ok'

        put(out, label, go)
    return out
