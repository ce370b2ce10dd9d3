# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.base.dtypes import (
    to_vartype as convert_np_dtype_to_dtype_,
)
from fluidlite.fluid import (
    core as core,
    dygraph_utils as dygraph_utils,
    layers as layers,
)
from fluidlite.fluid.data_feeder import (
    check_dtype as check_dtype,
    check_type as check_type,
    check_variable_and_dtype as check_variable_and_dtype,
    convert_dtype as convert_dtype,
)
from fluidlite.fluid.initializer import (
    ConstantInitializer as Constant,
)
from fluidlite.fluid.layer_helper import (
    LayerHelper as LayerHelper,
)
from fluidlite.fluid.layers import (
    utils as utils,
)
from fluidlite.fluid.layers.layer_function_generator import (
    templatedoc as templatedoc,
)
from fluidlite.fluid.layers.tensor.arithmetic import (
    scale as scale,
)
from fluidlite.fluid.layers.tensor.constants import (
    fill_constant as fill_constant,
)
from fluidlite.fluid.param_attr import (
    ParamAttr as ParamAttr,
)
from fluidlite.framework.common_attrs import (
    device_guard as device_guard,
)
from fluidlite.framework.mode import (
    dygraph_only as dygraph_only,
    in_dygraph_mode as in_dygraph_mode,
)
from fluidlite.framework.program import (
    default_main_program as default_main_program,
)
from fluidlite.framework.serialization.descs import (
    VarDesc as VarDesc,
)
from fluidlite.framework.serialization.op_protos import (
    OpProtoHolder as OpProtoHolder,
)
from fluidlite.framework.variable import (
    ComplexVariable as ComplexVariable,
    Variable as Variable,
)
from fluidlite.paddle.complex import (
    complex_variable_exists as complex_variable_exists,
    elementwise_add as elementwise_add,
    elementwise_div as elementwise_div,
    elementwise_mul as elementwise_mul,
    elementwise_sub as elementwise_sub,
    is_complex as is_complex,
    is_real as is_real,
    kron as kron,
    sum as sum,
    trace as trace,
)
