# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.reader import (
    batch as batch,
)
