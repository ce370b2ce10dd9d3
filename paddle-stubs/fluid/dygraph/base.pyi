# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    framework as framework,
)
from fluidlite.fluid import (
    core as core,
)
from fluidlite.fluid.dygraph.base import (
    Tracer as Tracer,
    disable_dygraph as disable_dygraph,
    disable_imperative as disable_imperative,
    enable_dygraph as enable_dygraph,
    enable_imperative as enable_imperative,
    enabled as enabled,
    grad as grad,
    guard as guard,
    in_dygraph_mode as in_dygraph_mode,
    no_grad as no_grad,
    param_guard as param_guard,
    program_desc_tracing_guard as program_desc_tracing_guard,
    signature_safe_contextmanager as signature_safe_contextmanager,
    switch_to_static_graph as switch_to_static_graph,
    to_variable as to_variable,
)
from fluidlite.fluid.small_modules import (
    wrap_decorator as wrap_decorator,
)
from fluidlite.reader.watchdog import (
    CleanupFuncRegistrar as CleanupFuncRegistrar,
)
