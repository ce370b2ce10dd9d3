# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    framework as framework,
    paddle as paddle,
)
from fluidlite.fluid import (
    core as core,
    log_helper as log_helper,
    unique_name as unique_name,
)
from fluidlite.fluid.data_feeder import (
    check_type as check_type,
)
from fluidlite.framework.gradients.backward import (
    append_backward as append_backward,
    calc_gradient as calc_gradient,
    gradients as gradients,
)
from fluidlite.framework.gradients.names import (
    ProgramStats as ProgramStats,
    serialize_op_decs as serialize_op_decs,
)
from fluidlite.paddle import (
    compat as cpt,
)
