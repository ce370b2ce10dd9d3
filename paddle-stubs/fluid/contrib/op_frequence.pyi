# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid.contrib.model_stat import (
    op_freq_statistic as op_freq_statistic,
)
from fluidlite.framework import (
    Program as Program,
)
