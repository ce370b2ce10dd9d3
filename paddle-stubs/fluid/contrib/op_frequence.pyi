# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.contrib.op_frequence import (
    Program as Program,
    op_freq_statistic as op_freq_statistic,
)
