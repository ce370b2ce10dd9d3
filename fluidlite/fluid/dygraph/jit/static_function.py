"""`declarative`: functions on tensors that run as programs."""

from __future__ import annotations

import copy
import functools
import inspect
import textwrap
import types
import weakref
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any

import numpy as np

from ....base import callsite, context
from ....eager import Tensor
from ....eager.placing import to_default_device
from ....framework import Variable, mode, tracing
from ..dygraph_to_static.rewriting import Refusal
from ..dygraph_to_static.runtime.calls import built, rewriting, rewritten
from ..dygraph_to_static.source import text_of
from ..members import Members
from .traced import DynamicShapes, Shapes, Spec, Traced, trace

Held = list[Any]


def signature(value: Any, leaves: list[Tensor], held: Held) -> Any:
    """The part of a trace's cache key for `value`: ranks and types of tensors and arrays, everything else by value.

    The tensors, whose shapes count as well, are appended to `leaves`, arrays as tensors that share their memory. What
    cannot be compared by value is compared by identity, and appended to `held`: as long as it is kept, nothing else
    gets its identity. Layers count by identity and mode, also those that are attributes of an object.
    """
    if isinstance(value, Tensor):
        leaves.append(value)
        array = value.array
        return (array.ndim, array.dtype.num)
    if isinstance(value, np.ndarray):
        tensor = Tensor(to_default_device(np.ascontiguousarray(value).reshape(value.shape)))
        return signature(tensor, leaves, held)
    if isinstance(value, (list, tuple)):
        return (type(value), *[signature(item, leaves, held) for item in value])
    if isinstance(value, dict):
        return (dict, *[(key, signature(item, leaves, held)) for key, item in value.items()])
    if isinstance(value, Members):
        held.append(value)
        return modes(value)
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        return (type(value), value)
    if isinstance(value, np.generic) or type(value).__hash__ not in (object.__hash__, None):
        return (type(value), value)
    held.append(value)
    inner: dict[str, Any] = getattr(value, "__dict__", {})
    watched: list[Hashable] = [modes(item) for item in inner.values() if isinstance(item, Members)]
    return (type(value), id(value), *watched)


def modes(layer: Any) -> Hashable:
    """The identities and training modes of a layer and all its sublayers."""
    parts: list[Any] = []
    _add_modes(layer, parts)
    return tuple(parts)


def _add_modes(layer: Any, parts: list[Any]) -> None:
    parts += (id(layer), layer.training)
    for inner in layer._sub_layers.values():
        if inner is not None:
            _add_modes(inner, parts)


SHAPES_KEPT = 256
"""The size of the cache from shapes to the dynamic-shape trace that is valid for them."""


class TraceCache:
    """Finds and makes traces: the first is specialised on its shapes, later ones have dynamic dimensions.

    Dimensions that differ between the calls so far are dynamic. Where the code needs the number of such a dimension, it
    is traced for each number; where it compares, for each outcome.
    """

    def __init__(self) -> None:
        self._exact: dict[Shapes, Traced] = {}
        self._dynamic: list[Traced] = []
        self._remembered: dict[Shapes, Traced] = {}
        self._first: Shapes | None = None
        self._axes: set[tuple[int, int]] = set()
        self._closed = False

    def find(self, shapes: Shapes) -> Traced | None:
        """The trace that is valid for tensors of these shapes, or None."""
        cached = self._exact.get(shapes) or self._remembered.get(shapes)
        if cached is not None:
            return cached
        for traced in reversed(self._dynamic):
            if traced.dynamic_shapes is not None and traced.dynamic_shapes.fit(shapes):
                if len(self._remembered) >= SHAPES_KEPT:
                    self._remembered.clear()
                self._remembered[shapes] = traced
                return traced
        return None

    def make(self, shapes: Shapes, trace: Callable[[DynamicShapes | None], Traced]) -> Traced:
        """Trace for these shapes, by `trace`, whose argument holds the dynamic dimensions, None without any."""
        if self._first is None:
            self._first = shapes
        for k, (one, other) in enumerate(zip(self._first, shapes, strict=True)):
            self._axes.update((k, axis) for axis, (a, b) in enumerate(zip(one, other, strict=True)) if a != b)
        if self._axes and not self._closed:
            try:
                traced = trace(DynamicShapes(shapes, self._axes))
            except Exception:
                # The code needs integers as shapes, or fails in any case; then the trace below raises as well.
                self._closed = True
            else:
                assert traced.dynamic_shapes is not None
                self._closed = not traced.dynamic_shapes.varies
                self._dynamic.append(traced)
                return traced
        traced = self._exact[shapes] = trace(None)
        return traced

    def forget(self, traced: Traced) -> None:
        """Remove `traced` from the cache."""
        self._dynamic = [one for one in self._dynamic if one is not traced]
        for cache in (self._exact, self._remembered):
            for shapes in [shapes for shapes, one in cache.items() if one is traced]:
                del cache[shapes]


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


def source_of(function: Callable[..., Any]) -> str:
    """The source of a function as it is traced, rewritten if it can be. Raises OSError if it has no source."""
    plain = undecorated(function)
    try:
        return text_of(getattr(plain, "__func__", plain))
    except Refusal:
        return textwrap.dedent(inspect.getsource(plain))
