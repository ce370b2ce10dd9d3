# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    core as core,
)
from fluidlite.dygraph.layers import (
    LayerObjectHelper as LayerObjectHelper,
)
from fluidlite.framework.mode import (
    in_dygraph_mode as in_dygraph_mode,
)
from fluidlite.framework.variable import (
    Parameter as Parameter,
)
from fluidlite.layer_helper_base import (
    LayerHelperBase as LayerHelperBase,
)
from fluidlite.param_attr import (
    ParamAttr as ParamAttr,
)
