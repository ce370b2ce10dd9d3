"""Functions of tensors with conditions and loops on them, rewritten so that they build programs."""

from ...base import missing
from .calls import call as convert_call
from .calls import rewritten as convert_function_with_cache

__all__ = ["ProgramTranslator", "convert_call", "convert_function_with_cache"]

# Traces are made with what is here.
__getattr__ = missing.reporter(
    __name__,
    {
        "AstNodeWrapper": "static_analysis",
        "NodeVarType": "static_analysis",
        "ProgramTranslator": "program_translator",
        "StaticAnalysisVisitor": "static_analysis",
        "convert_to_static": "fluid_modules",
        "create_static_variable_gast_node": "fluid_modules",
        "data_layer_not_check": "fluid_modules",
        "to_static_variable_gast_node": "fluid_modules",
    },
)
