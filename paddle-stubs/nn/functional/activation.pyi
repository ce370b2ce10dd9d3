# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.paddle.nn.functional.activation import (
    celu as celu,
    elu as elu,
    gelu as gelu,
    glu as glu,
    hardshrink as hardshrink,
    hardsigmoid as hardsigmoid,
    hardswish as hardswish,
    hardtanh as hardtanh,
    leaky_relu as leaky_relu,
    log_sigmoid as log_sigmoid,
    log_softmax as log_softmax,
    maxout as maxout,
    mish as mish,
    prelu as prelu,
    relu as relu,
    relu6 as relu6,
    selu as selu,
    silu as silu,
    softmax as softmax,
    softplus as softplus,
    softshrink as softshrink,
    softsign as softsign,
    swish as swish,
    tanhshrink as tanhshrink,
    thresholded_relu as thresholded_relu,
)
from fluidlite.paddle.tensor.math import (
    sigmoid as sigmoid,
    tanh as tanh,
)
