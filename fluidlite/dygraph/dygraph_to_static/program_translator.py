"""`fluid.dygraph.dygraph_to_static.program_translator`, by its name in Fluid."""

import logging
import threading
from collections.abc import Callable
from functools import wraps
from typing import Any

from ...base import missing
from ..jit.translator import ConcreteProgram, ProgramCache, ProgramTranslator
from .calls import rewritten as convert_function_with_cache

__all__ = [
    "ConcreteProgram",
    "FunctionCache",
    "ProgramCache",
    "ProgramTranslator",
    "convert_function_with_cache",
    "logger",
    "synchronized",
]

logger = logging.getLogger("fluid")


_LOCK = threading.RLock()


def synchronized(func: Callable[..., Any]) -> Callable[..., Any]:
    """`func` as one thread at a time calls it; all that are made of functions here wait for each other."""

    @wraps(func)
    def locked(*args: Any, **kwargs: Any) -> Any:
        with _LOCK:
            return func(*args, **kwargs)

    return locked


class FunctionCache:
    """Functions with what builds programs in their place (`FunctionCache` of Fluid's program_translator)."""

    def __init__(self) -> None:
        self._made: dict[Any, Any] = {}

    def get_or_cache_func(self, func: Callable[..., Any]) -> Callable[..., Any]:
        """What builds a program in place of `func`: itself if there is nothing to rewrite."""
        if not self.exist(func):
            self._made[func] = convert_function_with_cache(func)
        return self._made[func]  # type: ignore[no-any-return]

    def exist(self, func: Callable[..., Any]) -> bool:
        """Whether `func` is here."""
        return func in self._made


__getattr__ = missing.reporter(__name__)
