"""VarBase methods, attributes, errors."""

from collections import OrderedDict

import numpy as np
import paddle.fluid as fluid
from paddle.fluid import dygraph, layers
from paddle.fluid.dygraph import to_variable
from case_parts import leaf, put


def run_dygraph(rng):
    out = OrderedDict()
    a = leaf(rng.uniform(-1, 1, (3, 4)))
    b = leaf(rng.uniform(-1, 1, (4,)))
    i = to_variable(np.arange(6).reshape(2, 3).astype('int64'))
    i32 = to_variable(np.arange(6).reshape(2, 3).astype('int32'))
    layers.reduce_sum(a * 0.0).backward()
    tests = [
        ('gradient_none', lambda: a.gradient()),
        ('clear_none', lambda: a.clear_gradient()),
        ('after_clear_none', lambda: a.gradient()),
        ('shape_type', lambda: type(a.shape).__name__),
        ('dtype_str', lambda: str(a.dtype)),
        ('type', lambda: str(a.type)),
        ('persistable', lambda: a.persistable),
        (
            'dtypes',
            lambda: [
                str(to_variable(np.zeros(1, t)).dtype)
                for t in ('bool', 'int8', 'uint8', 'int16', 'int32', 'int64', 'float16', 'float32', 'float64')
            ],
        ),
        ('len', lambda: len(a)),
        ('len0', lambda: len(layers.reduce_sum(a))),
        ('bool', lambda: bool(layers.reduce_sum(a) > 100.0)),
        ('float', lambda: float(layers.mean(i.astype('float32')))),
        ('int', lambda: int(layers.mean(i.astype('float32')))),
        ('long', lambda: int(i[1, 2])),
        ('float_bad', lambda: float(a)),
        ('index', lambda: [10, 20, 30][i[0, 2]]),
        ('bool_bad', lambda: bool(a)),
        ('eq', lambda: a == a),
        ('ne', lambda: a != a),
        ('gt', lambda: a > 0),
        ('lt', lambda: 0.2 < a),
        ('in', lambda: a in [a]),
        ('hash', lambda: hash(a) == hash(a)),
        ('radd_int', lambda: i + 1),
        ('mul_int', lambda: i * 2),
        ('i32_div', lambda: i32 / 2),
        ('int_pow', lambda: i**2),
        ('mod', lambda: a % 2),
        ('rmod', lambda: 5 % i),
        ('rfloordiv', lambda: 5 // i),
        ('broadcast', lambda: a + b),
        ('broadcast_bad', lambda: a + to_variable(np.zeros(3, 'float32'))),
        ('numpy_right', lambda: a * np.float32(2)),
        ('neg', lambda: -a),
        ('pos', lambda: +a),
        ('and2', lambda: layers.logical_and(a > 0, a < 0.5)),
        ('isub', lambda: isub(a)),
        ('div0', lambda: a / 0.0),
        ('rpow', lambda: 2.0**a),
        ('pow_t', lambda: (a * a + 0.1) ** a),
        ('get0', lambda: a[0]),
        ('get_neg', lambda: a[-1]),
        ('get_slice', lambda: a[0:2]),
        ('get_step', lambda: a[::2]),
        ('get_rev', lambda: a[::-1]),
        ('get_mixed', lambda: a[1:, 2]),
        ('get_neg_slice', lambda: a[-2:, :-1]),
        ('get_out', lambda: a[5]),
        ('get_big', lambda: a[0:10]),
        ('get_empty', lambda: a[2:2]),
        ('iter', lambda: [r.numpy() for r in a][1]),
        ('to_string', lambda: str(type(a.to_string(True)))),
        ('astype', lambda: a.astype('float64')),
        ('astype_np', lambda: a.astype(np.int32)),
        ('detach', lambda: a.detach()),
        ('detach_name', lambda: a.detach().name),
        ('numpy_ro', lambda: np_write(a)),
        ('name_set', lambda: rename(a)),
        ('set_value_shape', lambda: a.set_value(np.zeros((2, 2), 'float32'))),
        ('set_value_dtype', lambda: a.set_value(np.zeros((3, 4), 'float64'))),
        ('set_value_var', lambda: a.set_value(a * 2)),
        ('set_value_list', lambda: b.set_value([1.0, 2.0, 3.0, 4.0])),
        ('after_set', lambda: a),
        ('backward_vec', lambda: (a * 2).backward()),
        ('backward_leaf', lambda: to_variable(np.ones(1, 'float32')).backward()),
        ('backward_none', lambda: a.detach().backward()),
        ('int_backward', lambda: layers.reduce_sum(i).backward()),
        ('value_tensor', lambda: np.array(a.value().get_tensor())),
        ('lod', lambda: a.value().get_tensor().lod()),
        ('is_var', lambda: isinstance(a, fluid.Variable)),
        ('is_core', lambda: isinstance(a, fluid.core.VarBase)),
        ('is_fw', lambda: isinstance(a, fluid.framework.Variable)),
        ('cls', lambda: type(a).__name__),
        ('param', lambda: type(dygraph.Linear(2, 2).weight).__name__),
        ('attr_missing', lambda: a.nothing),
        ('to_variable_var', lambda: str(to_variable(a) is a)),
        ('to_variable_list', lambda: to_variable([1.0, 2.0])),
        ('to_variable_f', lambda: to_variable(3.0)),
        ('to_variable_zero', lambda: to_variable(np.array(3.0, 'float32')).shape),
    ]
    for label, call in tests:
        put(out, label, call)
    return out


def isub(a):
    a = a * 1.0
    a -= 1.0
    a *= 2.0
    a /= 3.0
    a += a
    return a


def setit(a):
    a[0] = 1.0


def np_write(a):
    n = a.numpy()
    n[0, 0] = 77.0
    return a.numpy()


def rename(a):
    a.name = 'other'
    return a.name
