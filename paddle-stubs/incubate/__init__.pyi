# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from . import (
    hapi as hapi,
)
