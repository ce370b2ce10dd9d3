# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.framework.variable import (
    Variable as Variable,
)
from fluidlite.transpiler.details.vars_distributed import (
    VarDistributed as VarDistributed,
    VarStruct as VarStruct,
    VarsDistributed as VarsDistributed,
)
