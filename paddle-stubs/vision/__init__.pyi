# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from . import (
    colors as colors,
    datasets as datasets,
    transforms as transforms,
)
