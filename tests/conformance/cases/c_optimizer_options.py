"""Optimizers of programs with their options, clip, regularizers, schedules."""

from collections import OrderedDict

import numpy as np
import paddle.fluid as fluid
from paddle.fluid import layers
from case_parts import put


opt = fluid.optimizer
PA = fluid.ParamAttr


def run(rng):
    out = OrderedDict()
    clip, reg = fluid.clip, fluid.regularizer
    L = layers
    made = [
        ('adam_e', lambda: opt.Adam(0.1, 0.8, 0.9, 1e-2)),
        ('adam_lazy', lambda: opt.Adam(0.1, lazy_mode=True)),
        ('adam_sched', lambda: opt.Adam(L.cosine_decay(0.1, 2, 4))),
        ('rms_c', lambda: opt.RMSProp(0.05, rho=0.8, epsilon=1e-3, centered=True)),
        ('rms_cm', lambda: opt.RMSProp(0.05, momentum=0.5, centered=True)),
        ('lars', lambda: opt.LarsMomentum(0.5, 0.9, 0.01, 0.02)),
        ('lars_reg', lambda: opt.LarsMomentum(0.5, 0.9, regularization=reg.L2Decay(0.1))),
        ('ftrl', lambda: opt.Ftrl(0.1, l1=0.02, l2=0.03, lr_power=-0.4)),
        ('ftrl0', lambda: opt.Ftrl(0.1)),
        ('dpsgd', lambda: opt.Dpsgd(0.1, clip=10.0, batch_size=16.0, sigma=0.0)),
        ('nesterov', lambda: opt.Momentum(0.1, 0.9, use_nesterov=True)),
        ('decayed', lambda: opt.DecayedAdagrad(0.1, 0.8, 1e-3)),
        ('adadelta', lambda: opt.Adadelta(0.5, 1e-3, 0.8)),
        ('adamax', lambda: opt.Adamax(0.1, 0.8, 0.9, 1e-3)),
        ('lamb', lambda: opt.Lamb(0.05, 0.1, exclude_from_weight_decay_fn=lambda p: 'b_0' in p.name)),
        ('clip_g', lambda: opt.SGD(0.1, grad_clip=clip.GradientClipByGlobalNorm(0.1))),
        ('clip_n', lambda: opt.Adam(0.1, grad_clip=clip.GradientClipByNorm(0.1))),
        ('clip_v', lambda: opt.Momentum(0.1, 0.9, grad_clip=clip.GradientClipByValue(0.01, -0.02), regularization=reg.L1Decay(0.1))),
        ('need', lambda: opt.SGD(0.1, grad_clip=clip.GradientClipByGlobalNorm(0.1, need_clip=lambda p: 'b_0' in p.name))),
        ('poly', lambda: opt.SGD(L.polynomial_decay(0.1, 3, 0.01, 2.0, cycle=True))),
        ('warm_s', lambda: opt.SGD(L.linear_lr_warmup(L.exponential_decay(0.1, 2, 0.5), 2, 0.0, 0.1))),
        ('inv_s', lambda: opt.SGD(L.inverse_time_decay(0.1, 2, 0.5, True))),
        ('nat_s', lambda: opt.SGD(L.natural_exp_decay(0.1, 2, 0.5, True))),
        ('noam', lambda: opt.Adam(L.noam_decay(8, 2, 1.0))),
        ('piece', lambda: opt.Adagrad(L.piecewise_decay([1, 3], [0.1, 0.05, 0.01]))),
        ('rec', lambda: rec(opt.Adam(0.1))),
        ('look', lambda: opt.LookaheadOptimizer(opt.Adam(0.1), 0.3, 3)),
        ('named', lambda: opt.Adagrad(0.1, name='mine')),
        ('adam_bt', lambda: opt.Adam(0.1, beta1=L.create_global_var([1], 0.8, 'float32', True, name='b1'))),
    ]
    for label, make in made:

        def go():
            main, startup = fluid.Program(), fluid.Program()
            main.random_seed = startup.random_seed = 90
            with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(fluid.Scope()):
                x = fluid.data('x', [None, 3], 'float32')
                h = L.fc(x, 4, act='tanh', param_attr=PA(learning_rate=0.5, regularizer=reg.L1Decay(0.05)))
                h2 = L.fc(h, 4, param_attr=PA(trainable=False), bias_attr=PA(learning_rate=2.0))
                loss = L.reduce_mean(L.square(L.fc(h2, 1) - 1.0))
                o = make()
                if label == 'rec':
                    o._set_checkpoints([h, h2])
                r = o.minimize(loss)
                exe = fluid.Executor(fluid.CPUPlace())
                exe.run(startup)
                scope = fluid.global_scope()
                for p in main.all_parameters():
                    scope.find_var(p.name).get_tensor().set(rng.uniform(-0.5, 0.5, p.shape).astype('float32'), fluid.CPUPlace())
                losses = [exe.run(main, feed={'x': rng.uniform(-1, 1, (4, 3)).astype('float32')}, fetch_list=[loss])[0] for _ in range(5)]
                names = sorted(v.name for v in main.list_vars() if v.persistable)
                out[label + '_vars'] = names
                for n in names:
                    v = scope.find_var(n)
                    if v is not None and n not in ('feed', 'fetch'):
                        out[label + '_' + n] = np.array(v.get_tensor())
                if label not in ('warm_s', 'piece', 'look', 'rec', 'poly'):
                    out[label + '_ops'] = [op.type for op in main.global_block().ops]
                return np.concatenate(losses)

        put(out, label, go)
    return out


def rec(o):
    return fluid.optimizer.RecomputeOptimizer(o)
