# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid.contrib.reader import (
    distributed_batch_reader as distributed_batch_reader,
)
