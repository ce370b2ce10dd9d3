# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.executor.executor import (
    Executor as Executor,
)
from fluidlite.executor.parallel.compiler import (
    CompiledProgram as CompiledProgram,
)
from fluidlite.executor.scope import (
    scope_guard as scope_guard,
)
from fluidlite.fluid import (
    core as core,
)
from fluidlite.fluid.dygraph.base import (
    program_desc_tracing_guard as program_desc_tracing_guard,
    _switch_to_static_graph_ as switch_to_static_graph,
)
from fluidlite.fluid.dygraph.jit import (
    ProgramTranslator as ProgramTranslator,
    StaticFunction as StaticFunction,
    TracedLayer as TracedLayer,
    create_program_from_desc as create_program_from_desc,
    declarative as declarative,
    dygraph_to_static_func as dygraph_to_static_func,
    extract_vars as extract_vars,
    logger as logger,
)
from fluidlite.fluid.dygraph.layers import (
    Layer as Layer,
)
from fluidlite.fluid.small_modules import (
    wrap_decorator as wrap_decorator,
)
from fluidlite.framework.block import (
    Block as Block,
)
from fluidlite.framework.mode import (
    dygraph_only as dygraph_only,
    in_dygraph_mode as in_dygraph_mode,
)
from fluidlite.framework.program import (
    Program as Program,
)
from fluidlite.framework.variable import (
    Variable as Variable,
)
