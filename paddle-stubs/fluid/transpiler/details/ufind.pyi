# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid.transpiler.details import (
    UnionFind as UnionFind,
)
