# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from . import (
    ast_transformer as ast_transformer,
    partial_program as partial_program,
    program_translator as program_translator,
)
from fluidlite.fluid.dygraph.dygraph_to_static import (
    AstNodeWrapper as AstNodeWrapper,
    DygraphToStaticAst as DygraphToStaticAst,
    ProgramTranslator as ProgramTranslator,
    convert_call as convert_call,
    convert_function_with_cache as convert_function_with_cache,
    convert_to_static as convert_to_static,
)
