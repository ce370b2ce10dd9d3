# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.paddle.param_attr import (
    ParamAttr as ParamAttr,
)
