# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.transpiler.details.vars_distributed import (
    VarDistributed as VarDistributed,
    VarStruct as VarStruct,
    Variable as Variable,
    VarsDistributed as VarsDistributed,
)
