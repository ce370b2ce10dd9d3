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
from fluidlite.framework.program import (
    default_main_program as default_main_program,
    default_startup_program as default_startup_program,
)
from fluidlite.framework.variable import (
    Variable as Variable,
)
from fluidlite.layer_helper_base import (
    LayerHelperBase as LayerHelperBase,
)
from fluidlite.param_attr import (
    ParamAttr as ParamAttr,
    WeightNormParamAttr as WeightNormParamAttr,
)
