# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.base import (
    unique_name as unique_name,
)
from fluidlite.fluid import (
    core as core,
)
from fluidlite.fluid.initializer import (
    ConstantInitializer as Constant,
    XavierInitializer as Xavier,
)
from fluidlite.fluid.layer_helper import (
    LayerHelper as LayerHelper,
    LayerHelperBase as LayerHelperBase,
    ParamAttr as ParamAttr,
    Parameter as Parameter,
)
from fluidlite.framework.mode import (
    in_dygraph_mode as in_dygraph_mode,
)
from fluidlite.framework.names import (
    dtype_is_floating as dtype_is_floating,
)
from fluidlite.framework.serialization.op_protos import (
    OpProtoHolder as OpProtoHolder,
)
