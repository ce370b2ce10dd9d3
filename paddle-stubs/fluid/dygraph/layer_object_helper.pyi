# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid import (
    core as core,
)
from fluidlite.fluid.dygraph.layers import (
    LayerObjectHelper as LayerObjectHelper,
)
from fluidlite.fluid.layer_helper_base import (
    LayerHelperBase as LayerHelperBase,
)
from fluidlite.fluid.param_attr import (
    ParamAttr as ParamAttr,
)
from fluidlite.framework.mode import (
    in_dygraph_mode as in_dygraph_mode,
)
from fluidlite.framework.variable import (
    Parameter as Parameter,
)
