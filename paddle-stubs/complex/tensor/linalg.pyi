# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid import (
    layers as layers,
)
from fluidlite.framework.variable import (
    ComplexVariable as ComplexVariable,
)
from fluidlite.paddle.complex import (
    complex_variable_exists as complex_variable_exists,
    is_complex as is_complex,
    is_real as is_real,
    matmul as matmul,
)
