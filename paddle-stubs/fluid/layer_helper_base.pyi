# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.base import (
    unique_name as unique_name,
)
from fluidlite.fluid import (
    core as core,
)
from fluidlite.fluid.layer_helper_base import (
    LayerHelperBase as LayerHelperBase,
    ParamAttr as ParamAttr,
    Variable as Variable,
    WeightNormParamAttr as WeightNormParamAttr,
    default_main_program as default_main_program,
    default_startup_program as default_startup_program,
)
from fluidlite.framework.mode import (
    in_dygraph_mode as in_dygraph_mode,
)
