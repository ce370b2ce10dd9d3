# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.paddle.nn.utils import (
    clip_grad_norm_ as clip_grad_norm_,
    clip_grad_value_ as clip_grad_value_,
    parameters_to_vector as parameters_to_vector,
    vector_to_parameters as vector_to_parameters,
)
