# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid.transpiler.details import (
    VarDistributed as VarDistributed,
    VarStruct as VarStruct,
    VarsDistributed as VarsDistributed,
)
from fluidlite.framework import (
    Variable as Variable,
)
