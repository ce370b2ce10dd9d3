"""Functions of tensors with conditions and loops on them, rewritten so that they build programs."""

from typing import TYPE_CHECKING

from ....base import missing
from .runtime.calls import call as convert_call
from .runtime.calls import rewritten as convert_function_with_cache

if TYPE_CHECKING:
    # Loaded on first use, as `jit` imports this package.
    from ..jit.translator import ProgramTranslator  # noqa: F401
    from .ast_transformer import AstNodeWrapper, DygraphToStaticAst, convert_to_static  # noqa: F401

__all__ = ["ProgramTranslator", "convert_call", "convert_function_with_cache"]

__getattr__, __dir__ = missing.lazy(__name__)
