"""`declarative`: functions on tensors that run as programs."""

from __future__ import annotations

import copy
import functools
import types
import weakref
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any

from ...base import callsite, context
from ...eager import Tensor
from ...framework import Variable, mode, tracing
from ..dygraph_to_static.runtime.calls import built, rewriting, rewritten
from ..members import Members
from .dynamic_shapes import Shapes
from .nested_tensors import signature
from .trace_cache import TraceCache
from .traced import Spec, Traced, trace

TRACES_KEPT = 64
"""At most this many traces of a function are kept; the oldest is dropped first."""

KINDS_KEPT = 256
"""The size of a function's trace cache, in kinds of arguments."""

MANY_TRACES = 32
"""A function that is traced this many times causes a warning."""

_enabled: context.Slot[bool] = context.Slot("tracing.enabled", True)
_latest: context.Slot[Callable[[], Traced | None]] = context.Slot("tracing.latest", lambda: None)


def enable(on: bool) -> None:
    """Switch whether functions made by `declarative` run as programs or eagerly."""
    _enabled.set(on)


def enabled() -> bool:
    return _enabled.get()


def latest() -> Traced | None:
    """The program that ran last, if it still exists."""
    return _latest.get()()


class StaticFunction:
    """A function that is traced into a program for every new kind of arguments, and run as that program.

    A dimension that differs between calls becomes dynamic, if the function does not need its number.

    Arguments and results may hold tensors in lists, tuples and dicts; all other arguments are constants of the trace.
    The parameters and buffers that the function uses belong to the program and remain trainable. Follows the results of
    `fluid.dygraph.declarative`.

    Args:
        function: the function to trace.
        instance: the object that it is bound to, its first argument.
        input_spec: shapes and types that inputs may have, for saving.
    """

    def __init__(self, function: Callable[..., Any], instance: Any = None, input_spec: Any = None) -> None:
        functools.update_wrapper(self, function)
        self.__name__: str = getattr(function, "__name__", type(function).__name__)
        self.__qualname__: str = getattr(function, "__qualname__", self.__name__)
        self.function = function
        self.input_spec = input_spec
        self._instance = instance
        self._traces: dict[Hashable, TraceCache] = {}
        self._kept: list[tuple[TraceCache, Traced]] = []
        self._last: Traced | None = None
        self._made = 0

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        bound = _bound_to(instance)
        method = bound.get(self)
        if method is None:
            method = bound[self] = StaticFunction(self.function, instance, self.input_spec)
        return method

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function. Raises NotSupportedError where it needs values that are unknown in a trace."""
        every = args if self._instance is None else (self._instance, *args)
        if not _enabled.get() or tracing.record.get() is not None:
            return self.function(*every, **kwargs)
        if tracing.current() is not None:
            return self._built(*every, **kwargs)
        leaves: list[Tensor] = []
        held: list[Any] = []
        key = (
            signature(every, leaves, held),
            signature(kwargs, leaves, held) if kwargs else None,
            self._free_layers(held),
            mode.is_training(),
        )
        shapes = tuple([leaf.array.shape for leaf in leaves])
        traces = self._traces.get(key)
        traced = traces.find(shapes) if traces is not None else None
        if traced is None:
            if any(isinstance(item, Variable) for item in held):
                return self._built(*every, **kwargs)
            traced = self._trace(traces or TraceCache(), key, shapes, every, kwargs, held)
        self._last = traced
        _latest.set(weakref.ref(traced))
        return traced(leaves)

    def _trace(
        self,
        traces: TraceCache,
        key: Hashable,
        shapes: Shapes,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        held: list[Any],
    ) -> Traced:
        """Trace the function and add the result to the cache."""
        traced = traces.make(
            shapes,
            lambda dynamic_shapes: trace(
                self._built, args, kwargs, self.__name__, held, dynamic_shapes=dynamic_shapes
            ),
        )
        self._count()
        if key not in self._traces:
            while len(self._traces) >= KINDS_KEPT:
                self._traces.pop(next(iter(self._traces)), None)
            self._traces[key] = traces
        self._kept.append((traces, traced))
        while len(self._kept) > TRACES_KEPT:
            where, oldest = self._kept.pop(0)
            where.forget(oldest)
        return traced

    def _count(self) -> None:
        self._made += 1
        if self._made == MANY_TRACES:
            callsite.warn(
                f"{self.__name__} was traced {MANY_TRACES} times: numbers that change should come as tensors; with "
                "shapes that change much and are asked for (x.shape[0]) it is faster without declarative",
                RuntimeWarning,
            )

    def traced(self, *args: Any, specs: Mapping[int, Spec] | None = None, **kwargs: Any) -> Traced:
        """The trace for these arguments, without running it; `specs`: see `trace`."""
        every = args if self._instance is None else (self._instance, *args)
        return trace(self._built, every, kwargs, self.__name__, specs=specs)

    def _built(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function, rewritten so that conditions and loops on Variables become operators."""
        with rewriting():
            return rewritten(self.function)(*args, **kwargs)

    def last(self) -> Traced | None:
        """The trace that was used last."""
        return self._last

    def _free_layers(self, held: list[Any]) -> Hashable:
        """The signatures of layers that the function refers to without getting them as arguments."""
        function = self.function
        if not isinstance(function, types.FunctionType):
            return signature(function, [], held)
        return tuple([signature(layer, [], held) for layer in _free_layers(function)])

    @property
    def code(self) -> str:
        """The function's source as it is traced."""
        from .translator import source_of

        return source_of(self.function)

    def __deepcopy__(self, memo: dict[int, Any]) -> StaticFunction:
        return StaticFunction(self.function, copy.deepcopy(self._instance, memo), self.input_spec)

    def __repr__(self) -> str:
        of = f" of {self._instance!r:.60}" if self._instance is not None else ""
        return f"<declarative {self.__qualname__}{of}>"


def _free_layers(function: types.FunctionType) -> Iterator[Any]:
    """Layers in the closure of a function and among the globals that it names."""
    for cell in function.__closure__ or ():
        try:
            value = cell.cell_contents
        except ValueError:
            continue
        if isinstance(value, Members):
            yield value
    for name in function.__code__.co_names:
        value = function.__globals__.get(name)
        if isinstance(value, Members):
            yield value


_BOUND = "_declarative"


class _Bound(dict[Any, StaticFunction]):
    """The declarative methods of one object; a copy of the object makes its own."""

    def __deepcopy__(self, memo: dict[int, Any]) -> _Bound:
        return _Bound()

    __copy__ = __deepcopy__

    def __reduce__(self) -> Any:
        return _Bound, ()


def _bound_to(owner: Any) -> _Bound:
    """The declarative functions of an object, stored in its `__dict__`."""
    own = getattr(owner, "__dict__", {})
    if isinstance(owner, type) and _BOUND not in own:
        setattr(owner, _BOUND, _Bound())  # the __dict__ of a class is read-only
    return own[_BOUND] if _BOUND in own else own.setdefault(_BOUND, _Bound())  # type: ignore[no-any-return]


def kept(function: Any) -> StaticFunction:
    """`declarative(function)`, cached by function or method."""
    if isinstance(function, StaticFunction):
        return function
    plain = getattr(function, "__func__", function)
    bound = _bound_to(getattr(function, "__self__", function))
    static = bound.get(plain)
    if static is None:
        static = bound[plain] = declarative(function)
    return static


def declarative(function: Any = None) -> Any:
    """Run a function of tensors as a program: `@declarative` (`fluid.dygraph.declarative`, `dygraph.jit.declarative`).

    The first call traces its operators into a program, which later calls with tensors of the same kind run on the
    static engine, forwards and backwards; gradients reach parameters and arguments. Conditions and loops on tensors
    become control-flow operators, also in called functions; other Python code runs only during the trace.
    `docs/dygraph_to_static.md` lists what is translated; anything else raises NotSupportedError.

    `function`: a function, or the method of a layer. Raises TypeError for anything that is not callable.
    """
    if isinstance(function, StaticFunction):
        return function
    if not callable(function):
        raise TypeError(f"declarative takes a function, got {function!r}")
    if isinstance(function, types.MethodType):
        return StaticFunction(function.__func__, function.__self__)
    return StaticFunction(function)


def dygraph_to_static_func(function: Any) -> Any:
    """Rewrite a function that builds programs, so that conditions and loops on Variables become operators.

    Returns the function itself if it has none. Follows `fluid.dygraph.jit.dygraph_to_static_func`.
    """
    return built(undecorated(function))


def undecorated(function: Any) -> Any:
    """Return the undecorated function of a declarative function or method; leave plain functions alone."""
    if not isinstance(function, StaticFunction):
        return function
    instance = function._instance
    return function.function if instance is None else types.MethodType(function.function, instance)
