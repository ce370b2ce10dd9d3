"""`fluid.dygraph.dygraph_to_static.program_translator`, by its name in Fluid."""

from ...base import missing
from ..jit.translator import ProgramTranslator
from .calls import rewritten as convert_function_with_cache

__all__ = ["ProgramTranslator", "convert_function_with_cache"]

__getattr__ = missing.reporter(__name__)
