# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    core as core,
)
from fluidlite.base import (
    unique_name as unique_name,
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
from fluidlite.framework.variable import (
    Parameter as Parameter,
)
from fluidlite.initializer import (
    ConstantInitializer as Constant,
    XavierInitializer as Xavier,
)
from fluidlite.layer_helper import (
    LayerHelper as LayerHelper,
)
from fluidlite.layer_helper_base import (
    LayerHelperBase as LayerHelperBase,
)
from fluidlite.param_attr import (
    ParamAttr as ParamAttr,
)
