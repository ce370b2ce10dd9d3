# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    core as core,
    framework as framework,
)
from fluidlite.base import (
    unique_name as unique_name,
)
from fluidlite.dygraph import (
    parallel_helper as parallel_helper,
)
from fluidlite.dygraph.base import (
    param_guard as param_guard,
    program_desc_tracing_guard as program_desc_tracing_guard,
)
from fluidlite.dygraph.layer_object_helper import (
    LayerObjectHelper as LayerObjectHelper,
)
from fluidlite.dygraph.layers import (
    HookRemoveHelper as HookRemoveHelper,
    Layer as Layer,
)
from fluidlite.param_attr import (
    ParamAttr as ParamAttr,
)
