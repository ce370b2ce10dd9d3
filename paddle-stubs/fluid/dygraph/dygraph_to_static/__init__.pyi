# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from . import (
    ast_transformer as ast_transformer,
    partial_program as partial_program,
    program_translator as program_translator,
)
from fluidlite.dygraph.dygraph_to_static import (
    AstNodeWrapper as AstNodeWrapper,
    DygraphToStaticAst as DygraphToStaticAst,
    ProgramTranslator as ProgramTranslator,
    convert_to_static as convert_to_static,
)
from fluidlite.dygraph.dygraph_to_static.runtime.calls import (
    call as convert_call,
    rewritten as convert_function_with_cache,
)
