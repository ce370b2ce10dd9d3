# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.transpiler.details.ufind import (
    UnionFind as UnionFind,
)
