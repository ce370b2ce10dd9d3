"""Frozen parameters: trainable=False at the start and later, stop_gradient; what the optimizer gives back."""

from collections import OrderedDict

import numpy as np
import paddle.fluid as fluid
from paddle.fluid import dygraph, layers
from paddle.fluid.dygraph import Linear, to_variable
from case_parts import leaf, put, setp


opt = fluid.optimizer
PA = fluid.ParamAttr


def run_dygraph(rng):
    out = OrderedDict()
    x = leaf(rng.uniform(-1, 1, (4, 3)))
    a = Linear(3, 3, param_attr=PA(trainable=False))
    b = Linear(3, 2)
    setp(a, rng), setp(b, rng)
    params = a.parameters() + b.parameters()
    out['flags'] = ['%s %s %s' % (p.name, p.trainable, p.stop_gradient) for p in params]
    y = b(a(x))
    out['stop'] = [str(a(x).stop_gradient), str(a(to_variable(np.ones((1, 3), 'float32'))).stop_gradient)]
    layers.reduce_sum(y).backward()
    put(out, 'frozen_grad', lambda: a.weight.gradient())
    before = a.weight.numpy()
    o = opt.SGD(0.1, parameter_list=params)
    o.minimize(layers.reduce_sum(y))
    out['frozen_diff'] = a.weight.numpy() - before
    out['bias'] = a.bias.numpy()
    b.weight.trainable = False
    out['flags2'] = ['%s %s %s' % (p.name, p.trainable, p.stop_gradient) for p in params]
    before = b.weight.numpy()
    loss = layers.reduce_sum(b(a(x)))
    loss.backward()
    o.minimize(loss)
    out['frozen2'] = b.weight.numpy() - before
    b.weight.trainable = True
    b.weight.stop_gradient = True
    b.clear_gradients()
    loss = layers.reduce_sum(b(a(x)))
    loss.backward()
    put(out, 'stopped_grad', lambda: b.weight.gradient())
    before = b.weight.numpy()
    o.minimize(loss)
    out['frozen3'] = b.weight.numpy() - before
    out['rate'] = str([p.optimize_attr for p in params])
    # minimize without backward, twice, without gradients
    b.clear_gradients(), a.clear_gradients()
    put(out, 'no_backward', lambda: str(type(o.minimize(loss))))
    put(out, 'clear_gradients_opt', lambda: o.clear_gradients())
    put(out, 'lr', lambda: o.current_step_lr())
    put(out, 'lr_t', lambda: o.current_step_lr())
    put(out, 'minimize_params', lambda: str(len(o.minimize(loss, parameter_list=b.parameters())[1])))
    put(out, 'minimize_nograd', lambda: str(len(o.minimize(loss, no_grad_set=set([b.bias.name]))[1])))
    sched = opt.SGD(dygraph.PiecewiseDecay([1, 2], [0.1, 0.2, 0.3], 0), parameter_list=b.parameters())
    put(out, 'sched_lr', lambda: sched.current_step_lr())
    put(out, 'backward_api', lambda: [p.name for p, g in o.backward(loss)])
    put(out, 'apply', lambda: str(type(o.apply_gradients([]))))
    put(out, 'apply_optimize', lambda: str(type(o.apply_optimize(loss, None, []))))
    return out
