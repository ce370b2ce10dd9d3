"""Runs a script of the static API on Paddle 3, which has no `fluid`: as far as the networks that are measured need it.

usage: on_paddle3.py SCRIPT [ARGS]
"""

import runpy
import sys
from types import ModuleType, SimpleNamespace

import paddle
import paddle.nn.functional as F

paddle.enable_static()


def activated(x, act):
    return getattr(F, act)(x) if act else x


def fc(x, size, num_flatten_dims=1, act=None):
    if len(x.shape) > num_flatten_dims + 1:
        x = paddle.flatten(x, num_flatten_dims)
    return activated(paddle.nn.Linear(x.shape[-1], size)(x), act)


def conv2d(x, filters, size, stride=1, padding=0, groups=1, bias_attr=None, act=None):
    layer = paddle.nn.Conv2D(x.shape[1], filters, size, stride, padding, groups=groups, bias_attr=bias_attr)
    return activated(layer(x), act)


def batch_norm(x, act=None):
    return activated(paddle.nn.BatchNorm2D(x.shape[1])(x), act)


def layer_norm(x, begin_norm_axis):
    return paddle.nn.LayerNorm(x.shape[begin_norm_axis:])(x)


def pool2d(x, size=-1, pool_type="max", stride=1, padding=0, global_pooling=False):
    if global_pooling:
        return F.adaptive_avg_pool2d(x, 1)
    return F.max_pool2d(x, size, stride, padding)


def embedding(x, size, is_sparse=False):
    return paddle.nn.Embedding(*size, sparse=is_sparse)(x)


def basic_lstm(x, first, last, size, num_layers, forget_bias):
    return paddle.nn.LSTM(x.shape[-1], size, num_layers)(x)


layers = SimpleNamespace(
    fc=fc,
    conv2d=conv2d,
    batch_norm=batch_norm,
    layer_norm=layer_norm,
    pool2d=pool2d,
    reshape=paddle.reshape,
    transpose=paddle.transpose,
    softmax=F.softmax,
    softmax_with_cross_entropy=F.softmax_with_cross_entropy,
    sigmoid_cross_entropy_with_logits=lambda x, y: F.binary_cross_entropy_with_logits(x, y, reduction="none"),
    matmul=lambda x, y, transpose_y=False, alpha=1.0: paddle.matmul(x * alpha, y, transpose_y=transpose_y),
    dropout=lambda x, p, dropout_implementation: F.dropout(x, p, mode=dropout_implementation),
    elementwise_add=lambda x, y, act=None: activated(x + y, act),
    reduce_sum=lambda x, dim=None: paddle.sum(x, dim),
    reduce_mean=lambda x, dim=None: paddle.mean(x, dim),
    concat=paddle.concat,
    fill_constant=lambda shape, dtype, value: paddle.full(shape, value, dtype),
    square=paddle.square,
    cast=paddle.cast,
    unsqueeze=paddle.unsqueeze,
)
fluid = ModuleType("paddle.fluid")
fluid.__dict__.update(
    {
        name: getattr(paddle.static, name)
        for name in ("Program", "program_guard", "data", "Executor", "scope_guard")
    },
    layers=layers,
    embedding=embedding,
    contrib=SimpleNamespace(layers=SimpleNamespace(basic_lstm=basic_lstm)),
    optimizer=paddle.optimizer,
    unique_name=paddle.utils.unique_name,
    CPUPlace=paddle.CPUPlace,
    Scope=paddle.base.core.Scope,
)
paddle.fluid = sys.modules["paddle.fluid"] = fluid
sys.argv = sys.argv[1:]
sys.path.insert(0, sys.argv[0].rpartition("/")[0])
runpy.run_path(sys.argv[0], run_name="__main__")
