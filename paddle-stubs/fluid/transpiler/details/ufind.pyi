# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.transpiler.details import (
    UnionFind as UnionFind,
)
