# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid.transpiler.details import (
    HashName as HashName,
    PSDispatcher as PSDispatcher,
    RoundRobin as RoundRobin,
)
