# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from . import (
    distribute_transpiler as distribute_transpiler,
    version as version,
)
