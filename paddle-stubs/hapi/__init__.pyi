# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from . import (
    callbacks as callbacks,
    model as model,
)
from fluidlite.paddle.hapi import (
    Model as Model,
    summary as summary,
)
