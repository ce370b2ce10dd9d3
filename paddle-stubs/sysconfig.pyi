# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.paddle.small_modules import (
    get_include as get_include,
    get_lib as get_lib,
)
