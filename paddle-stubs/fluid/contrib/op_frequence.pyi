# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.contrib.op_frequence import (
    op_freq_statistic as op_freq_statistic,
)
from fluidlite.framework.program import (
    Program as Program,
)
