"""Calls in rewritten functions: callees are rewritten as well, and built-in functions accept Variables."""

from __future__ import annotations

import builtins
import functools
import inspect
import os
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from pathlib import Path
from typing import Any

import numpy as np

from .....base.dtypes import VarType, to_vartype
from .....base.errors import NotSupportedError
from .....eager import Tensor
from .....framework import Variable, mode, tracing
from .... import layers
from ....layers import Print, fill_constant
from ....layers import shape as shape_of
from ....optimizer.schedules import LearningRateDecay
from .. import source
from ..rewriting import Refusal
from . import containers, values
from .branching import choose, deciding, given
from .containers import TensorRecords
from .values import here, is_tensor, scalar

helpers: Any = None
"""The namespace of rewritten code, which `helpers.py` puts here, as it imports this module."""

_OURS = str(Path(__file__).absolute().parents[4])
_PACKAGES = ("site-packages", "dist-packages")


@functools.cache
def _python() -> tuple[str, ...]:
    """The folders of Python's own modules."""
    import sysconfig  # slow to import, and needed for declarative functions only

    return tuple({sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib")})


@functools.cache
def _passed(filename: str) -> bool:
    """Whether a file is this package's or Python's."""
    if filename.startswith(("<frozen", _OURS + os.sep)):
        return True
    return filename.startswith(_python()) and not _is_package(filename)


def _is_package(filename: str) -> bool:
    return any(f"{os.sep}{name}{os.sep}" in filename for name in _PACKAGES)


def _is_users(function: types.FunctionType) -> bool:
    """True if a function may operate on tensors; in an installed package, if its module imports this one."""
    filename = function.__code__.co_filename
    if _passed(filename):
        return False
    if not _is_package(filename):
        return True
    ours = __name__.partition(".")[0]
    return any(
        str(getattr(value, "__module__", None) or getattr(value, "__name__", "")).partition(".")[0] == ours
        for value in function.__globals__.values()
        if isinstance(value, (types.ModuleType, types.FunctionType, type))
    )


def rewritten(function: Any) -> Any:
    """The version of `function` that builds a program: rewritten if it is the user's and can be; methods stay bound."""
    if isinstance(function, types.MethodType):
        new = rewritten(function.__func__)
        return function if new is function.__func__ else types.MethodType(new, function.__self__)
    if isinstance(function, partial):
        return partial(rewritten(function.func), *function.args, **function.keywords)
    if not isinstance(function, types.FunctionType):
        inner = type(function).__call__ if callable(function) else None
        if not isinstance(inner, types.FunctionType):
            return function
        new = rewritten(inner)
        return function if new is inner else types.MethodType(new, function)
    if "_d2s_original" in function.__dict__:
        return function
    if not _is_users(function):
        return function
    try:
        return source.rewritten(function, helpers)
    except Refusal:
        return function


def built(function: Any) -> Any:
    """A wrapper that builds a program, also in the layers that are called; `function` itself if it is not rewritten."""
    new = rewritten(function)
    if new is function:
        return function

    @wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        with rewriting():
            return new(*args, **kwargs)

    return called


_SCHEDULE_LAYERS = {
    "CosineDecay": "cosine_decay",
    "ExponentialDecay": "exponential_decay",
    "InverseTimeDecay": "inverse_time_decay",
    "NaturalExpDecay": "natural_exp_decay",
    "NoamDecay": "noam_decay",
    "PiecewiseDecay": "piecewise_decay",
    "PolynomialDecay": "polynomial_decay",
}


def _schedule(rate: LearningRateDecay) -> Callable[..., Any]:
    """A function that appends the operators of a schedule, which count the program's steps, in place of `rate`.

    Schedules of the user's own are returned as they are.
    """
    name = _SCHEDULE_LAYERS.get(type(rate).__name__)
    if name is None or type(rate).__module__ != LearningRateDecay.__module__:
        return rate
    build = getattr(layers, name)
    return partial(build, **{key: getattr(rate, key) for key in inspect.signature(build).parameters})


@contextmanager
def rewriting() -> Iterator[None]:
    """Context manager: layers that are called run a rewritten `forward`."""
    with tracing.rewriter.hold(rewritten):
        yield


def call(function: Any) -> Any:
    """The function to call in place of `function`."""
    if isinstance(function, LearningRateDecay) and not mode.in_dygraph_mode():
        return _schedule(function)
    numpys = getattr(function, "__module__", None) == "numpy"
    if numpys or isinstance(function, (type, types.BuiltinFunctionType)):
        return _BUILTIN.get(function, function)
    return rewritten(function)


def _range(*args: Any) -> Any:
    return containers.Range(*args) if any(is_tensor(arg) for arg in args) else range(*args)


def _enumerate(items: Any, start: Any = 0) -> Any:
    source = containers.of(items)
    return enumerate(items, start) if source is None else containers.Numbered(source, start)


def _zip(*several: Any, **options: Any) -> Any:
    sources = [containers.of(items) for items in several]
    if not any(sources):
        return zip(*several, **options)  # noqa: B905
    return containers.Together(
        [one or containers.Items(items) for one, items in zip(sources, several, strict=True)]
    )


def _len(value: Any) -> Any:
    if isinstance(value, (values.TensorList, TensorRecords)):
        return value.length()
    if not is_tensor(value):
        return len(value)
    count = containers.Rows(value)
    known = count.known()
    return values.as_number(count.count()) if known is None else known


def _int(*args: Any, **options: Any) -> Any:
    return scalar(args[0], VarType.INT64) if args and is_tensor(args[0]) else int(*args, **options)


def _float(*args: Any) -> Any:
    if args and is_tensor(args[0]):
        var = values.variable(args[0])
        return scalar(var, VarType.FP64 if var.dtype == VarType.FP64 else VarType.FP32)
    return float(*args)


def _bool(*args: Any) -> Any:
    return values.truth(args[0]) if args and is_tensor(args[0]) else bool(*args)


def _print(*args: Any, **options: Any) -> None:
    if not any(is_tensor(arg) for arg in args):
        print(*args, **options)
        return
    before: list[str] = []
    for arg in args:
        if is_tensor(arg) and not isinstance(arg, values.TensorList):
            Print(values.variable(arg), message=" ".join(before), print_phase="forward")
            before = []
        else:
            before.append(str(arg))


def _extreme(function: Any, first_is_it: Callable[[Any, Any], Any]) -> Any:
    def chosen(*args: Any, **options: Any) -> Any:
        if len(args) < 2 or options or not any(is_tensor(arg) for arg in args):
            return function(*args, **options)
        extreme = args[0]
        for other in args[1:]:
            extreme = choose(first_is_it(extreme, other), partial(given, extreme), partial(given, other))
        return extreme

    return chosen


def _map(function: Any, *several: Any) -> Any:
    return map(call(function), *[rows(items) for items in several])


def _filled(function: Any, value: float | None) -> Any:
    """`np.zeros`, `np.ones` or `np.full` that also accepts Variables as sizes, and then returns a Variable."""

    def made(shape: Any, *args: Any, **options: Any) -> Any:
        sizes = list(shape) if isinstance(shape, (list, tuple)) else [shape]
        if not any(is_tensor(size) for size in sizes):
            return function(shape, *args, **options)
        rest = list(args)
        fill = value if value is not None else (rest.pop(0) if rest else options.pop("fill_value"))
        dtype = rest[0] if rest else options.pop("dtype", None)
        if dtype is None:
            dtype = "float64" if value is not None else np.asarray(fill).dtype
        filled = fill_constant(sizes, to_vartype(np.dtype(dtype)), fill)
        filled.stop_gradient = True
        return filled

    return made


_BUILTIN: dict[Any, Any] = {
    np.zeros: _filled(np.zeros, 0.0),
    np.ones: _filled(np.ones, 1.0),
    np.full: _filled(np.full, None),
    builtins.range: _range,
    builtins.enumerate: _enumerate,
    builtins.zip: _zip,
    builtins.len: _len,
    builtins.int: _int,
    builtins.float: _float,
    builtins.bool: _bool,
    builtins.print: _print,
    builtins.map: _map,
    builtins.max: _extreme(max, lambda a, b: a >= b),
    builtins.min: _extreme(min, lambda a, b: a <= b),
}


def shape(value: Any) -> Any:
    """`value.shape`, with Variables in place of sizes of -1."""
    static = value.shape
    if not isinstance(value, Variable) or not is_tensor(value) or value.type != VarType.LOD_TENSOR:
        return static
    if all(not isinstance(n, int) or n >= 0 for n in static):
        return static
    sizes = shape_of(value)
    return type(static)([values.as_number(sizes[k]) if n < 0 else n for k, n in enumerate(static)])


def numpy(value: Any) -> Any:
    """`value.numpy()`; for a Variable, one with some methods of arrays."""
    lasts = isinstance(value, Variable) and getattr(value, "persistable", False)
    if not is_tensor(value) or (isinstance(value, Tensor) and not lasts):
        return value.numpy()
    return values.array(values.variable(value))


def rows(items: Any) -> Any:
    """The iterable of a comprehension."""
    source = containers.of(items)
    return items if source is None else list(source)


def known(test: Any) -> Any:
    """A condition of a comprehension, which must be Python's."""
    if is_tensor(test):
        raise NotSupportedError(
            f"how many elements a comprehension has depends on tensors{here()}: use a loop with `if` and append"
        )
    return test


def result(returned: Any, value: Callable[[], Any]) -> Any:
    """The result of a function that may end without `return`."""
    if is_tensor(returned):
        raise NotSupportedError(
            f"whether anything is returned depends on tensors{here()}: end the function with a return of its own"
        )
    return value() if returned else None


def raised(error: Callable[[], Any]) -> Any:
    """The exception of a `raise`; NotSupportedError where tensors decide whether it is raised."""
    exception = error()
    if deciding.get():
        raise NotSupportedError(
            f"whether {exception!r:.200} is raised depends on tensors{here()}: programs cannot raise; use assert"
        )
    return exception


def assert_(test: Any, message: Callable[[], Any]) -> None:
    """`assert test, message()`; in a program, an operator that raises AssertionError."""
    if is_tensor(test):
        from .....framework import default_main_program

        default_main_program().current_block().append_op(
            type="assert",
            inputs={"Cond": [values.variable(test)]},
            outputs={},
            attrs={"message": f"{message() or ''}{here()}"},
        )
    elif not test:
        said = message()
        raise AssertionError(*([] if said is None else [said]))
