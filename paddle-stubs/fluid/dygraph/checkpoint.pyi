# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid import (
    core as core,
)
from fluidlite.fluid.dygraph import (
    learning_rate_scheduler as learning_rate_scheduler,
)
from fluidlite.fluid.dygraph.checkpoint import (
    ParamBase as ParamBase,
    Parameter as Parameter,
    load_dygraph as load_dygraph,
    save_dygraph as save_dygraph,
)
from fluidlite.framework.mode import (
    dygraph_only as dygraph_only,
    in_dygraph_mode as in_dygraph_mode,
)
from fluidlite.framework.program import (
    default_main_program as default_main_program,
)
from fluidlite.framework.variable import (
    Variable as Variable,
)
