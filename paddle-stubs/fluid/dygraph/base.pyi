# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    core as core,
    framework as framework,
)
from fluidlite.dygraph.base import (
    disable_dygraph as disable_dygraph,
    disable_dygraph as disable_imperative,
    enable_dygraph as enable_dygraph,
    enable_dygraph as enable_imperative,
    enabled as enabled,
    guard as guard,
    param_guard as param_guard,
    program_desc_tracing_guard as program_desc_tracing_guard,
    signature_safe_contextmanager as signature_safe_contextmanager,
    _switch_to_static_graph_ as switch_to_static_graph,
    to_variable as to_variable,
)
from fluidlite.eager.autograd import (
    grad as grad,
    no_grad as no_grad,
)
from fluidlite.eager.tracer import (
    Tracer as Tracer,
)
from fluidlite.framework.mode import (
    in_dygraph_mode as in_dygraph_mode,
)
from fluidlite.multiprocess_utils import (
    CleanupFuncRegistrar as CleanupFuncRegistrar,
)
from fluidlite.wrapped_decorator import (
    wrap_decorator as wrap_decorator,
)
