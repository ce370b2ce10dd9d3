"""gradient(), grad variants, accumulation, BackwardStrategy, sparse."""

from collections import OrderedDict

import numpy as np
import paddle.fluid as fluid
from paddle.fluid import layers
from paddle.fluid.dygraph import Embedding, Linear, grad, no_grad, to_variable
from case_parts import leaf, put, setp


def run_dygraph(rng):
    out = OrderedDict()
    x = leaf(rng.uniform(-1, 1, (3, 4)))
    y = leaf(rng.uniform(-1, 1, (3, 4)))
    layers.reduce_sum(x * y).backward()
    out['first'] = x.gradient()
    layers.reduce_sum(x * y * 2.0).backward()
    out['second'] = x.gradient()
    z = x * 3.0
    h = layers.tanh(z)
    layers.reduce_sum(h * h).backward()
    put(out, 'z', lambda: z.gradient())
    put(out, 'h', lambda: h.gradient())
    x.clear_gradient()
    put(out, 'cleared', lambda: x.gradient())
    s = fluid.dygraph.BackwardStrategy()
    s.sort_sum_gradient = True
    put(out, 'strategy', lambda: layers.reduce_sum(x * x + x).backward(s))
    put(out, 'strategy_g', lambda: x.gradient())
    put(out, 'core_strategy', lambda: layers.reduce_sum(x * x + x).backward(fluid.core.BackwardStrategy()))
    put(out, 'repr_strategy', lambda: str(s.sort_sum_gradient))
    loss = layers.reduce_sum(x * x)
    loss.backward()
    put(out, 'twice', lambda: loss.backward())
    put(out, 'twice_g', lambda: x.gradient())
    f = lambda: layers.reduce_sum(layers.square(x) * y)
    for label, call in [
        ('g1', lambda: grad(f(), [x])),
        ('g2', lambda: grad([f(), layers.reduce_sum(x)], [x, y])),
        ('g_out', lambda: grad(x * y, x, grad_outputs=y)),
        ('g_out_none', lambda: grad([x * y, x * 2.0], x, grad_outputs=[None, y])),
        ('g_unused', lambda: grad(f(), [leaf([1.0])])),
        ('g_unused_ok', lambda: str(grad(f(), [x, leaf([1.0])], allow_unused=True)[1])),
        ('g_nograd', lambda: grad(f(), [x], no_grad_vars=[y])),
        ('g_nograd1', lambda: grad(f(), [x], no_grad_vars=y)),
        ('g_nograd_set', lambda: grad(f(), [x], no_grad_vars=set([y]))),
        ('g_strategy', lambda: grad(f(), [x], backward_strategy=s)),
        ('g_create', lambda: grad(layers.reduce_sum(grad(f(), x, create_graph=True)[0]), [y])),
        ('g_retain', lambda: grad(f(), x, retain_graph=True)),
        ('g_only', lambda: grad(f(), x, only_inputs=False)),
        ('g_bad', lambda: grad(3, x)),
        ('g_bad2', lambda: grad(f(), 'x')),
        ('g_bad3', lambda: grad([], [x])),
        ('g_bad4', lambda: grad(x * y, x, grad_outputs=leaf([1.0]))),
        (
            'g_shape',
            lambda: str([type(grad(f(), [x])).__name__, grad(f(), [x])[0].stop_gradient, grad(f(), x, create_graph=True)[0].stop_gradient]),
        ),
        ('g_inter', lambda: inter(x)),
        ('g_same', lambda: grad(x, x)),
        ('g_third', lambda: third(x)),
        ('g_stopped', lambda: grad(layers.reduce_sum(to_variable(np.ones(2, 'float32')) * 2.0), x)),
    ]:
        put(out, label, call)
    with no_grad():
        q = x * 2.0
    out['ng'] = str(q.stop_gradient)
    put(out, 'ng_back', lambda: q.backward())

    @no_grad
    def inner(v, k=1.0):
        """doc"""
        return v * k

    out['ng_dec'] = [str(inner(x, k=2.0).stop_gradient), inner.__name__, str(inner.__doc__)]
    put(out, 'ng_call', lambda: no_grad()(lambda: x * 2.0)().stop_gradient)
    emb = Embedding([6, 2], is_sparse=True)
    emb.weight.set_value(rng.uniform(-1, 1, (6, 2)).astype('float32'))
    e = emb(to_variable(np.array([[1], [3], [1]], 'int64')))
    layers.reduce_sum(e * e).backward()
    g = emb.weight.gradient()
    out['sparse_type'] = [type(g).__name__, str(len(g)), str(type(g[0]).__name__), str(g[1])]
    out['sparse0'], out['sparse1'] = g[0], np.array(g[1])
    put(out, 'sparse_clear', lambda: emb.weight.clear_gradient())
    lin = setp(Linear(4, 2), rng)
    lin(x).backward()
    out['lin'] = lin.weight.gradient()
    lin.clear_gradients()
    out['lin0'] = lin.weight.gradient()
    for k in range(2):
        layers.reduce_sum(lin(x)).backward()
        out['acc%d' % k] = lin.weight.gradient()
    out['x_acc'] = x.gradient()
    w = lin.weight
    w.stop_gradient = True
    layers.reduce_sum(lin(x) * 3.0).backward()
    out['w_stopped'], out['b_going'] = w.gradient(), lin.bias.gradient()
    d = x.detach()
    d.stop_gradient = False
    layers.reduce_sum(d * x).backward()
    out['d'], out['x'] = d.gradient(), x.gradient()
    return out


def inter(x):
    z = layers.square(x)
    w = layers.reduce_sum(z * x)
    return grad(w, z)


def third(x):
    y = layers.elementwise_mul(layers.square(x), x)
    a = grad(y, x, create_graph=True)[0]
    return grad(a, x)
