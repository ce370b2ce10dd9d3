"""`fluid.dygraph.dygraph_to_static.program_translator`, by its name in Fluid."""

import logging

from ...base import missing
from ..jit.translator import ConcreteProgram, ProgramCache, ProgramTranslator
from .calls import rewritten as convert_function_with_cache

__all__ = ["ConcreteProgram", "ProgramCache", "ProgramTranslator", "convert_function_with_cache", "logger"]

logger = logging.getLogger("fluid")

__getattr__ = missing.reporter(__name__)
