# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid.data_feeder import (
    check_dtype as check_dtype,
    check_variable_and_dtype as check_variable_and_dtype,
)
from fluidlite.fluid.layer_helper import (
    LayerHelper as LayerHelper,
)
from fluidlite.fluid.small_modules import (
    Variable as Variable,
    embedding as embedding,
    one_hot as one_hot,
)
from fluidlite.framework.mode import (
    in_dygraph_mode as in_dygraph_mode,
)
