"""Functions of tensors with conditions and loops on them, rewritten so that they build programs."""

from typing import TYPE_CHECKING

from ...base import missing
from .runtime.calls import call as convert_call
from .runtime.calls import rewritten as convert_function_with_cache

if TYPE_CHECKING:
    # Traces are made with what is here.
    from .fluid_modules import (  # noqa: F401
        DygraphToStaticAst,
        convert_to_static,
        create_static_variable_gast_node,
        data_layer_not_check,
        to_static_variable_gast_node,
    )
    from .loop_transformer import LoopTransformer, NameVisitor  # noqa: F401
    from .program_translator import ProgramTranslator  # noqa: F401
    from .static_analysis import AstNodeWrapper, NodeVarType, StaticAnalysisVisitor  # noqa: F401

__all__ = ["ProgramTranslator", "convert_call", "convert_function_with_cache"]

__getattr__, __dir__ = missing.lazy(__name__)
