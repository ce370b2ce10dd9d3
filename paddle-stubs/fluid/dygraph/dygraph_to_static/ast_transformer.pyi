# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid.dygraph.dygraph_to_static.ast_transformer import (
    AstNodeWrapper as AstNodeWrapper,
    DygraphToStaticAst as DygraphToStaticAst,
    ast_to_func as ast_to_func,
    convert_to_static as convert_to_static,
)
