# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid.incubate.fleet.utils.hdfs import (
    HDFSClient as HDFSClient,
    get_logger as get_logger,
)
