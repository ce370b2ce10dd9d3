# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.paddle.tensor.random import (
    bernoulli as bernoulli,
    multinomial as multinomial,
    normal as normal,
    rand as rand,
    randint as randint,
    randint_like as randint_like,
    randn as randn,
    randperm as randperm,
    seed as seed,
    standard_normal as standard_normal,
    uniform as uniform,
)
