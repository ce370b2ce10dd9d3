"""Functions and layers as programs, and models in files (`paddle.jit`)."""

from __future__ import annotations

from typing import Any

from ..fluid.dygraph.jit import ProgramTranslator, TracedLayer
from ..fluid.dygraph.jit.models import TranslatedLayer
from ..fluid.dygraph.jit.models import load as _load
from ..fluid.dygraph.jit.models import save as _save
from ..fluid.dygraph.jit.static_function import StaticFunction, declarative
from ..fluid.dygraph.layers import Layer
from ..framework import mode

mode.be_modern()

__all__ = [
    "ProgramTranslator",
    "TracedLayer",
    "TranslatedLayer",
    "load",
    "not_to_static",
    "save",
    "to_static",
]


def to_static(function: Any = None, input_spec: Any = None, build_strategy: Any = None) -> Any:
    """Run a function of tensors, or the `forward` of a layer, as a program (`paddle.jit.to_static`).

    See `fluid.dygraph.declarative`; also used as `@to_static(input_spec=[...])`.

    Args:
        function: a function, a method, or a layer, which is changed and returned.
        input_spec: InputSpecs of the arguments, which `save` uses.
        build_strategy: accepted and without effect.

    Raises:
        TypeError: `function` is nothing of the kind.
    """
    if function is None:
        return lambda given: to_static(given, input_spec)
    if isinstance(function, Layer):
        function.forward = to_static(function.forward, input_spec)  # type: ignore[method-assign]
        return function
    static: StaticFunction = declarative(function)
    if input_spec is not None:
        static.input_spec = input_spec
    return static


def not_to_static(func: Any = None) -> Any:
    """The function itself: tracing runs all code as it is written (`paddle.jit.not_to_static`)."""
    return (lambda given: given) if func is None else func


def save(layer: Any, path: str, input_spec: Any = None, **configs: Any) -> None:
    """Save a layer or function as `PATH.pdmodel` and `PATH.pdiparams` (`paddle.jit.save`).

    Args:
        layer: a layer, or a function of tensors.
        path: folder and beginning of the files' names.
        input_spec: an InputSpec or example tensor for each argument; by default what `to_static` was given, or what
            the last call looked like.
        configs: options of Paddle, accepted and without effect.

    Raises:
        ValueError: nothing says what the inputs look like. NotSupportedError: the course of the function depends on
        the values of tensors.
    """
    _save(layer, path, input_spec)


def load(path: str, **configs: Any) -> TranslatedLayer:
    """The layer that `save` wrote (`paddle.jit.load`); `configs` are accepted and without effect.

    Raises FileNotFoundError for a missing file, FormatError for a damaged one.
    """
    return _load(path)
