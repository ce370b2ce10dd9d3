"""Optimizers in dygraph with clip, regularizer, schedules and attributes of parameters."""

from collections import OrderedDict

import numpy as np
import paddle.fluid as fluid
from paddle.fluid import dygraph, layers
from paddle.fluid.dygraph import Linear, to_variable
from case_parts import put, setp, value


opt = fluid.optimizer
PA = fluid.ParamAttr


def run_dygraph(rng):
    out = OrderedDict()
    clip = fluid.clip
    reg = fluid.regularizer
    made = [
        ('sgd_value', lambda p: opt.SGD(0.1, parameter_list=p, grad_clip=clip.GradientClipByValue(0.05))),
        ('sgd_norm', lambda p: opt.SGD(0.1, parameter_list=p, grad_clip=clip.GradientClipByNorm(0.1))),
        ('sgd_gnorm', lambda p: opt.SGD(0.1, parameter_list=p, grad_clip=clip.GradientClipByGlobalNorm(0.1))),
        ('mom_l2', lambda p: opt.Momentum(0.1, 0.9, parameter_list=p, regularization=reg.L2Decay(0.1))),
        (
            'adam_all',
            lambda p: opt.Adam(
                0.1,
                beta1=0.8,
                beta2=0.9,
                epsilon=1e-2,
                parameter_list=p,
                regularization=reg.L2Decay(0.1),
                grad_clip=clip.GradientClipByGlobalNorm(0.2),
            ),
        ),
        ('adam_sched', lambda p: opt.Adam(dygraph.ExponentialDecay(0.1, 2, 0.5, True), parameter_list=p)),
        ('sgd_noam', lambda p: opt.SGD(dygraph.NoamDecay(4, 2, learning_rate=1.0), parameter_list=p)),
        ('adamax', lambda p: opt.Adamax(0.1, beta1=0.8, beta2=0.9, epsilon=1e-3, parameter_list=p)),
        ('adagrad', lambda p: opt.Adagrad(0.1, epsilon=1e-2, initial_accumulator_value=0.3, parameter_list=p)),
        ('decayed', lambda p: opt.DecayedAdagrad(0.1, decay=0.5, epsilon=1e-3, parameter_list=p)),
        ('adadelta', lambda p: opt.Adadelta(0.5, epsilon=1e-3, rho=0.8, parameter_list=p)),
        ('rms', lambda p: opt.RMSProp(0.05, rho=0.8, epsilon=1e-3, parameter_list=p)),
        ('rms_c', lambda p: opt.RMSProp(0.05, centered=True, parameter_list=p)),
        ('rms_m', lambda p: opt.RMSProp(0.05, momentum=0.9, parameter_list=p)),
        ('ftrl', lambda p: opt.Ftrl(0.1, l1=0.02, l2=0.03, lr_power=-0.4, parameter_list=p)),
        ('ftrl0', lambda p: opt.Ftrl(0.1, parameter_list=p)),
        ('lamb', lambda p: opt.Lamb(0.05, lamb_weight_decay=0.1, exclude_from_weight_decay_fn=lambda q: 'b_0' in q.name, parameter_list=p)),
        ('lars', lambda p: opt.LarsMomentum(0.5, 0.9, lars_coeff=0.01, lars_weight_decay=0.01, parameter_list=p)),
        ('nesterov', lambda p: opt.Momentum(0.1, 0.8, use_nesterov=True, parameter_list=p, grad_clip=clip.GradientClipByNorm(0.1))),
        ('adam_lazy', lambda p: opt.Adam(0.1, lazy_mode=True, parameter_list=p)),
        ('named', lambda p: opt.Adam(0.1, name='mine', parameter_list=p)),
        (
            'need_clip',
            lambda p: opt.SGD(0.1, parameter_list=p, grad_clip=clip.GradientClipByValue(0.01, need_clip=lambda q: 'b_0' in q.name)),
        ),
        ('dpsgd', lambda p: opt.Dpsgd(0.1, clip=10.0, batch_size=16.0, sigma=0.0, parameter_list=p)),
        ('static_lr', lambda p: opt.SGD(layers.exponential_decay(0.1, 2, 0.5), parameter_list=p)),
        ('lr_tensor', lambda p: opt.SGD(to_variable(np.array([0.1], 'float32')), parameter_list=p)),
    ]
    made += [
        ('no_list', lambda p: opt.SGD(0.1)),
        ('bad_lr', lambda p: opt.SGD('x', parameter_list=p)),
        ('bad_clip', lambda p: opt.SGD(0.1, parameter_list=p, grad_clip=3)),
    ]
    for label, make in made:

        def go():
            net = dygraph.Sequential(
                Linear(3, 4, act='tanh', param_attr=PA(learning_rate=0.5, regularizer=reg.L1Decay(0.05))),
                Linear(4, 4, param_attr=PA(trainable=False), bias_attr=PA(learning_rate=2.0)),
                Linear(4, 1),
            )
            setp(net, rng)
            o = make(net.parameters())
            x = [rng.uniform(-1, 1, (4, 3)).astype('float32') for _ in range(4)]
            losses = []
            for i in range(4):
                loss = layers.reduce_mean(layers.square(net(to_variable(x[i])) - 1.0))
                loss.backward()
                if i == 0:
                    out[label + '_frozen_grad'] = value(net[str(1)].weight.gradient())
                r = o.minimize(loss)
                if i == 0:
                    out[label + '_returns'] = ['%s %d' % (type(v).__name__, len(v)) for v in r] + [type(r).__name__]
                    out[label + '_returned'] = ['%s %s' % (p.name, type(g).__name__) for p, g in r[1]] or 'none'
                    out[label + '_ops'] = str(type(r[0]).__name__)
                net.clear_gradients()
                losses.append(float(loss.numpy()))
            for k, p in net.named_parameters():
                out['%s_%s' % (label, k)] = p.numpy()
            state = o.state_dict()
            out[label + '_state'] = sorted(state) or 'none'
            for k in sorted(state):
                out[label + '_s_' + k] = value(state[k]) if not isinstance(state[k], dict) else str(sorted(state[k].items()))
            out[label + '_lr'] = o.current_step_lr()
            return np.array(losses)

        put(out, label, go)
    return out
