# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.paddle.tensor.creation import (
    arange as arange,
    assign as assign,
    create_parameter as create_parameter,
    diag as diag,
    empty as empty,
    empty_like as empty_like,
    eye as eye,
    full as full,
    full_like as full_like,
    linspace as linspace,
    meshgrid as meshgrid,
    ones as ones,
    ones_like as ones_like,
    to_tensor as to_tensor,
    tril as tril,
    triu as triu,
    zeros as zeros,
    zeros_like as zeros_like,
)
