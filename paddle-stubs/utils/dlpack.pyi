# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.paddle.utils import (
    from_dlpack as from_dlpack,
    to_dlpack as to_dlpack,
)
