# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.base.dtypes import (
    to_vartype as convert_np_dtype_to_dtype_,
)
from fluidlite.fluid import (
    core as core,
)
from fluidlite.fluid.data_feeder import (
    check_variable_and_dtype as check_variable_and_dtype,
)
from fluidlite.fluid.layers.layer_function_generator import (
    LayerHelper as LayerHelper,
    OpProtoHolder as OpProtoHolder,
    autodoc as autodoc,
    deprecated as deprecated,
    escape_math as escape_math,
    generate_activation_fn as generate_activation_fn,
    generate_layer_fn as generate_layer_fn,
    templatedoc as templatedoc,
)
from fluidlite.framework.mode import (
    in_dygraph_mode as in_dygraph_mode,
)
from fluidlite.framework.variable import (
    Variable as Variable,
)
