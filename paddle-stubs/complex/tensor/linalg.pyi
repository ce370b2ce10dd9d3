# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    layers as layers,
)
from fluidlite.paddle.complex.helper import (
    is_complex as is_complex,
    is_real as is_real,
)
from fluidlite.paddle.complex.tensor.linalg import (
    ComplexVariable as ComplexVariable,
    complex_variable_exists as complex_variable_exists,
    matmul as matmul,
)
