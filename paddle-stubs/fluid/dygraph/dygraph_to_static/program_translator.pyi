# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    executor as executor,
    framework as framework,
)
from fluidlite.executor.scope import (
    scope_guard as scope_guard,
)
from fluidlite.fluid import (
    core as core,
    unique_name as unique_name,
)
from fluidlite.fluid.data_feeder import (
    check_type as check_type,
)
from fluidlite.fluid.dygraph import (
    layers as layers,
)
from fluidlite.fluid.dygraph.base import (
    param_guard as param_guard,
    _switch_to_static_graph_ as switch_to_static_graph,
)
from fluidlite.fluid.dygraph.dygraph_to_static.ast_transformer import (
    DygraphToStaticAst as DygraphToStaticAst,
)
from fluidlite.fluid.dygraph.dygraph_to_static.partial_program import (
    partial_program_from as partial_program_from,
)
from fluidlite.fluid.dygraph.dygraph_to_static.runtime.calls import (
    rewritten as convert_function_with_cache,
    rewritten as convert_to_static,
)
from fluidlite.fluid.dygraph.jit.translator import (
    ConcreteProgram as ConcreteProgram,
    ProgramCache as ProgramCache,
    ProgramTranslator as ProgramTranslator,
)
