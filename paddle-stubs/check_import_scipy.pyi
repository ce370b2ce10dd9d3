# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.paddle.small_modules import (
    check_import_scipy as check_import_scipy,
)
