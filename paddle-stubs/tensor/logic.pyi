# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.paddle.tensor.logic import (
    allclose as allclose,
    equal as equal,
    equal_all as equal_all,
    greater_equal as greater_equal,
    greater_than as greater_than,
    is_empty as is_empty,
    is_tensor as is_tensor,
    isclose as isclose,
    less_equal as less_equal,
    less_than as less_than,
    logical_and as logical_and,
    logical_not as logical_not,
    logical_or as logical_or,
    logical_xor as logical_xor,
    not_equal as not_equal,
)
