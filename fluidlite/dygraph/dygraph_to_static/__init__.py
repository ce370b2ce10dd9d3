"""Functions of tensors with conditions and loops on them, rewritten so that they build programs."""

from ...base import missing
from .calls import call as convert_call
from .calls import rewritten as convert_function_with_cache

__all__ = ["ProgramTranslator", "convert_call", "convert_function_with_cache"]

# Traces are made with what is here.
__getattr__ = missing.reporter(__name__, {"ProgramTranslator": "program_translator"})
