# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    layers as layers,
)
from fluidlite.framework.complex_variable import (
    ComplexVariable as ComplexVariable,
)
from fluidlite.paddle.complex.helper import (
    complex_variable_exists as complex_variable_exists,
    is_complex as is_complex,
    is_real as is_real,
)
from fluidlite.paddle.complex.tensor.linalg import (
    matmul as matmul,
)
