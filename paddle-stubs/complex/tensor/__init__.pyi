# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from . import (
    linalg as linalg,
    manipulation as manipulation,
    math as math,
)
from fluidlite.paddle.complex import (
    elementwise_add as elementwise_add,
    elementwise_div as elementwise_div,
    elementwise_mul as elementwise_mul,
    elementwise_sub as elementwise_sub,
    kron as kron,
    matmul as matmul,
    reshape as reshape,
    sum as sum,
    trace as trace,
    transpose as transpose,
)
