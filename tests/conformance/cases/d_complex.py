"""Complex numbers as pairs of tensors: to_variable of complex arrays, the functions of paddle.complex, gradients."""
from collections import OrderedDict

import numpy as np
import paddle
import paddle.fluid as fluid


def described(x):
    return [str(list(x.shape)), str(x.dtype), x.name['real'], x.name['imag']]


def run_dygraph(rng):
    out = OrderedDict()
    a = (rng.uniform(-1, 1, (2, 3)) + 1j * rng.uniform(-1, 1, (2, 3))).astype('complex64')
    b = (rng.uniform(1, 2, (2, 3)) + 1j * rng.uniform(-1, 1, (2, 3))).astype('complex64')
    x, y = fluid.dygraph.to_variable(a), fluid.dygraph.to_variable(b, name='other')
    real = fluid.dygraph.to_variable(b.real.copy())
    row = fluid.dygraph.to_variable(b[:, 0].copy())
    out['given'], out['named'] = described(x), described(y)
    out['double'] = str(fluid.dygraph.to_variable(a.astype('complex128')).dtype)
    y.name = 'again'
    out['renamed'] = described(y)
    parts = {}

    def put(name, value):
        out[name + '_real'], out[name + '_imag'] = value.real.numpy(), value.imag.numpy()
        parts[name] = value

    for name in ('elementwise_add', 'elementwise_sub', 'elementwise_mul', 'elementwise_div'):
        layer = getattr(paddle.complex, name)
        put(name, layer(x, y))
        put(name + '_by_real', layer(x, real))
        put(name + '_of_real', layer(real, y))
        put(name + '_axis', layer(x, row, axis=0))
    put('kron', paddle.complex.kron(x, y))
    put('kron_real', paddle.complex.kron(real, x))
    put('reshape', paddle.complex.reshape(x, [3, -1]))
    put('transpose', paddle.complex.transpose(x, [1, 0]))
    put('matmul', paddle.complex.matmul(x, y, transpose_y=True, alpha=0.5))
    put('matmul_real', paddle.complex.matmul(x, real, True))
    put('sum', paddle.complex.sum(x))
    put('sum_dim', paddle.complex.sum(x, dim=1, keep_dim=True))
    put('trace', paddle.complex.trace(paddle.complex.matmul(x, y, transpose_y=True), offset=1))
    out['numpy_dtype'] = str(parts['sum'].numpy().dtype)
    for name, function in (('both_real', lambda: paddle.complex.matmul(real, real)),
                           ('real', lambda: paddle.complex.reshape(real, [6]))):
        try:
            function()
        except ValueError:
            out[name] = 'refused'
    try:
        fluid.ComplexVariable(real, row.real)
    except AssertionError:
        out['shapes'] = 'refused'
    x.real.stop_gradient = x.imag.stop_gradient = False
    z = paddle.complex.elementwise_mul(x, y)
    loss = fluid.layers.reduce_sum(z.real * z.real + z.imag * z.imag)
    loss.backward()
    out['gradient_real'], out['gradient_imag'] = x.real.gradient(), x.imag.gradient()
    out['kept'] = str(fluid.dygraph.to_variable(x) is x)
    return out
