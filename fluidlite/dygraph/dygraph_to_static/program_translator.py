"""`fluid.dygraph.dygraph_to_static.program_translator`, by its name in Fluid."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from ...base import missing
from ...eager import Tensor
from ...framework import Program
from ..jit.translator import ConcreteProgram, ProgramCache, ProgramTranslator
from ..layers import Layer
from .runtime.calls import rewritten as convert_function_with_cache

__all__ = [
    "ConcreteProgram",
    "FunctionCache",
    "FunctionSpec",
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


class FunctionSpec:
    """A function with the arguments of one call (`program_translator.FunctionSpec` of Fluid).

    Two are equal if their functions are; where Fluid looks programs up, arguments do not count.
    """

    def __init__(self, func: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        self._dyfunc, self._args, self._kwargs = func, args, kwargs

    @property
    def dyfunc(self) -> Callable[..., Any]:
        return self._dyfunc

    @property
    def args(self) -> Sequence[Any]:
        return self._args

    @property
    def kwargs(self) -> dict[str, Any]:
        return self._kwargs

    def is_method(self) -> bool:
        """Whether the first argument is a layer, whose method this is."""
        return bool(self._args) and isinstance(self._args[0], Layer)

    def parameters(self, include_sublayer: bool = True) -> OrderedDict[str, Any]:
        """The parameters of the layer whose method this is, by name; of its sublayers, too."""
        if not self.is_method():
            return OrderedDict()
        return OrderedDict((one.name, one) for one in self._args[0].parameters(include_sublayer))

    def to_static_inputs(self, main_program: Program) -> list[Any]:
        """The positional arguments with variables of `main_program` in place of arrays and tensors.

        Arrays become variables to be fed by the names `feed_0`, `feed_1`, ..., tensors variables of their own names.
        What lists and dicts hold stays as it is.
        """
        block = main_program.global_block()
        made = []
        for place, given in enumerate(self._args):
            if isinstance(given, (np.ndarray, Tensor)):
                name = f"feed_{place}" if isinstance(given, np.ndarray) else given.name
                given = block.create_var(
                    name=name,
                    shape=list(given.shape),
                    dtype=given.dtype,
                    is_data=isinstance(given, np.ndarray),
                    need_check_feed=False,
                    stop_gradient=True,
                )
            made.append(given)
        return made

    def __hash__(self) -> int:
        return hash(self._dyfunc)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FunctionSpec) and self._dyfunc == other._dyfunc


__getattr__ = missing.reporter(__name__)
