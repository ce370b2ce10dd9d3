# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid.layers import (
    collective as collective,
)
from fluidlite.framework.variable import (
    Parameter as Parameter,
)
