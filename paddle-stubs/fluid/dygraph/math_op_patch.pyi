# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.base.dtypes import (
    to_vartype as convert_np_dtype_to_dtype_,
)
from fluidlite.eager.autograd import (
    no_grad as no_grad,
)
from fluidlite.eager.tracer import (
    monkey_patch_math_varbase as monkey_patch_math_varbase,
)
from fluidlite.fluid import (
    core as core,
)
from fluidlite.fluid.dygraph.base import (
    to_variable as to_variable,
)
from fluidlite.framework.serialization.op_protos import (
    OpProtoHolder as OpProtoHolder,
)
from fluidlite.framework.variable import (
    Variable as Variable,
)
