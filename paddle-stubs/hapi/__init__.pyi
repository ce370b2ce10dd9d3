# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from . import (
    callbacks as callbacks,
    model as model,
    progress as progress,
)
from fluidlite.paddle.hapi.model import (
    Model as Model,
)
from fluidlite.paddle.hapi.summary import (
    summary as summary,
)
