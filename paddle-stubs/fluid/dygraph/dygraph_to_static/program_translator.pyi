# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    core as core,
    executor as executor,
    framework as framework,
    unique_name as unique_name,
)
from fluidlite.data_feeder import (
    check_type as check_type,
)
from fluidlite.dygraph import (
    layers as layers,
)
from fluidlite.dygraph.base import (
    param_guard as param_guard,
    _switch_to_static_graph_ as switch_to_static_graph,
)
from fluidlite.dygraph.dygraph_to_static.ast_transformer import (
    DygraphToStaticAst as DygraphToStaticAst,
)
from fluidlite.dygraph.dygraph_to_static.partial_program import (
    partial_program_from as partial_program_from,
)
from fluidlite.dygraph.dygraph_to_static.runtime.calls import (
    rewritten as convert_function_with_cache,
    rewritten as convert_to_static,
)
from fluidlite.dygraph.jit.translator import (
    ConcreteProgram as ConcreteProgram,
    ProgramCache as ProgramCache,
    ProgramTranslator as ProgramTranslator,
)
from fluidlite.executor.scope import scope_guard as scope_guard
