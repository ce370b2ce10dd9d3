# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.paddle.check_import_scipy import (
    check_import_scipy as check_import_scipy,
)
