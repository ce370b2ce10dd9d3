# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from . import (
    data_generator as data_generator,
    fleet as fleet,
)
