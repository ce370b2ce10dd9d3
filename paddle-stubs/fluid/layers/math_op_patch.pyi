# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid import (
    core as core,
    unique_name as unique_name,
)
from fluidlite.fluid.layers.utils import (
    compare_ops as compare_ops,
)
from fluidlite.fluid.small_modules import (
    monkey_patch_variable as monkey_patch_variable,
)
from fluidlite.framework.serialization.op_protos import (
    OpProtoHolder as OpProtoHolder,
)
from fluidlite.framework.variable import (
    Variable as Variable,
)
