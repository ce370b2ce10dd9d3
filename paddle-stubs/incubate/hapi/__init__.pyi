# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from . import (
    distributed as distributed,
    vision as vision,
)
