# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.framework.variable import (
    Parameter as Parameter,
)
from fluidlite.layers import (
    collective as collective,
)
