# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    framework as framework,
)
from fluidlite.base import (
    unique_name as unique_name,
)
from fluidlite.fluid import (
    core as core,
)
from fluidlite.fluid.dygraph import (
    parallel_helper as parallel_helper,
)
from fluidlite.fluid.dygraph.base import (
    param_guard as param_guard,
    program_desc_tracing_guard as program_desc_tracing_guard,
)
from fluidlite.fluid.dygraph.layers import (
    HookRemoveHelper as HookRemoveHelper,
    Layer as Layer,
    LayerObjectHelper as LayerObjectHelper,
    ParamAttr as ParamAttr,
)
