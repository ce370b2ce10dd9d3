# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid.contrib.slim.nas import (
    LOCK_EX as LOCK_EX,
    LOCK_UN as LOCK_UN,
    lock as lock,
    unlock as unlock,
)
