# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from . import (
    datasets as datasets,
    transforms as transforms,
)
