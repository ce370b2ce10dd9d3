# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.paddle.nn.initializer import (
    Assign as Assign,
    Bilinear as Bilinear,
    Constant as Constant,
    Initializer as Initializer,
    KaimingNormal as KaimingNormal,
    KaimingUniform as KaimingUniform,
    Normal as Normal,
    TruncatedNormal as TruncatedNormal,
    Uniform as Uniform,
    XavierNormal as XavierNormal,
    XavierUniform as XavierUniform,
    calculate_gain as calculate_gain,
)
