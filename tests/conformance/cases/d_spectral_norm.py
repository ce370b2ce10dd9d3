"""spectral_norm: value, gradient, several power iterations."""

from collections import OrderedDict

from paddle.fluid import dygraph, layers
from paddle.fluid.dygraph import to_variable
from case_parts import leaf


def run_dygraph(rng):
    out = OrderedDict()
    for label, shape, dim, n in (
        ('a', (2, 3), 0, 1),
        ('b', (3, 2, 2), 1, 2),
        ('c', (4, 3, 2, 2), 0, 1),
        ('d', (3, 4), 1, 3),
        ('sq', (2, 2), 0, 50),
    ):
        net = dygraph.SpectralNorm(shape, dim=dim, power_iters=n)
        out[label + '_state'] = ['%s %s %s' % (k, v.name, v.shape) for k, v in net.state_dict().items()]
        for p in net.parameters():
            p.set_value(rng.uniform(0.1, 1, p.shape).astype('float32'))
        w = leaf(rng.uniform(-1, 1, shape))
        y = net(w)
        out[label] = y.numpy()
        (layers.reduce_sum(y * to_variable(rng.uniform(-1, 1, shape).astype('float32')))).backward()
        out[label + '_dw'] = w.gradient()
        for k, v in net.state_dict().items():
            out[label + '_after_' + k] = v.numpy()
        out[label + '_again'] = net(w).numpy()
    return out
