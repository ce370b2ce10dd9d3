# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid.contrib.utils import (
    distributed_batch_reader as distributed_batch_reader,
)
