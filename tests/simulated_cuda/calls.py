"""How array functions run: operands checked as CuPy checks them, the work computed by NumPy, results in device memory.

Results are computed when the function is called, from what the current stream has done by then, but they reach the
memory of the result only when the stream gets there. While a stream captures, and on a machine with `late=True`,
results are computed only when the stream gets there: what is computed before that says what shapes they have.
"""

import contextvars
import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from . import errors, streams
from .errors import CUDARuntimeError
from .machine import machine

KINDS = "biufc"
_PLAIN = frozenset({int, float, bool, str, type(None), np.ndarray})


def is_array(value: Any) -> bool:
    """Whether a value is an array of the simulated CuPy."""
    return hasattr(type(value), "_simulated")


def unwrapped(value: Any) -> Any:
    """A value with NumPy views in place of the arrays in it."""
    if type(value) in _PLAIN:
        return value
    if is_array(value):
        return value._view
    if isinstance(value, (tuple, list)):
        return type(value)(map(unwrapped, value))
    if isinstance(value, dict):
        return {name: unwrapped(each) for name, each in value.items()}
    if isinstance(value, slice):
        return slice(*(_bound(each) for each in (value.start, value.stop, value.step)))
    return value


def _bound(value: Any) -> Any:
    if is_array(value):
        raise TypeError("slice indices must be integers or None or have an __index__ method")
    return value


def arrays_in(value: Any) -> Iterator[Any]:
    """The arrays in a value."""
    if type(value) in _PLAIN:
        return
    if is_array(value):
        yield value
    elif isinstance(value, (tuple, list)):
        for each in value:
            yield from arrays_in(each)
    elif isinstance(value, dict):
        for each in value.values():
            yield from arrays_in(each)


def refuse_numpy(value: Any) -> None:
    """Raise for NumPy arrays, which CuPy does not take where it wants arrays."""
    if isinstance(value, np.ndarray):
        raise TypeError(f"Unsupported type {type(value)}")
    if isinstance(value, (tuple, list)):
        for each in value:
            refuse_numpy(each)
    elif isinstance(value, dict):
        refuse_numpy(list(value.values()))


def check_devices(value: Any) -> None:
    """Raise for arrays that the current device cannot read."""
    m = machine()
    for array in arrays_in(value):
        there = array.data.device_id
        if array.size and there != m.device and (m.device, there) not in m.peers:
            raise ValueError(
                f"The device where the array resides ({there}) is different from the current device ({m.device}). "
                "Peer access is unavailable between these devices."
            )


def quietly(function: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> Any:
    """Call NumPy as a GPU computes: without a word about overflow or invalid values.

    In a context of its own: finalizers have queued work done, and one may run while NumPy sets a ContextVar (which it
    does for `errstate`); before Python 3.12 another one set meanwhile in the same context can crash the interpreter.
    """
    return contextvars.copy_context().run(_quietly, function, args, kwargs)


def _quietly(function: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> Any:
    if isinstance(function, np.ufunc) or function is np.copyto:  # they warn by `errstate` alone
        with np.errstate(all="ignore"):
            return function(*args, **kwargs)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return function(*args, **kwargs)


def leaves(result: Any) -> list[np.ndarray]:
    """The arrays of a result."""
    if isinstance(result, (tuple, list)):
        return [each for part in result for each in leaves(part)]
    return [np.asarray(result)]


def begin(what: str, *, waits: bool = False, blas: str = "") -> tuple[streams.Queue, bool]:
    """The queue that a call goes to, and whether its work must be put off; otherwise all before it has been done.

    Raises what captures do not allow.
    """
    queue = streams.current_queue()
    m = machine()
    capture = queue.capture
    if capture is not None:
        if capture.invalid:
            raise CUDARuntimeError(errors.CAPTURE_INVALIDATED)
        if blas:
            raise NotImplementedError(f"calling {blas} API during stream capture is currently unsupported")
        if waits:
            capture.invalid = True
            raise CUDARuntimeError(errors.CAPTURE_UNSUPPORTED, f"{what} waits for the device")
    put_off = capture is not None or (m.options.late and not waits)
    if not put_off:
        queue.drain()
    if waits:
        m.counters.syncs += 1
    return queue, put_off


def call(
    function: Callable[..., Any],
    *args: Any,
    waits: bool = False,
    blas: str = "",
    view: bool = False,
    **kwargs: Any,
) -> Any:
    """Call a NumPy function with device arrays; results that are views stay views, others are fresh arrays.

    Args:
        function: called with NumPy views of device memory.
        waits: whether CuPy waits for the device in this function.
        blas: the library that CuPy calls, if it refuses to do so while a stream captures.
        view: whether this may be a question of shapes and strides alone, which no stream hears of.
    """
    m, owners = machine(), list(arrays_in((args, kwargs)))
    if view:
        found = quietly(function, unwrapped(args), unwrapped(kwargs))
        if all(each.size and m.device_of(each.ctypes.data) is not None for each in leaves(found)):
            return _wrap(found, owners, itertools.count(), [])
    check_devices(owners)
    with m.lock:
        queue, put_off = begin(getattr(function, "__name__", "a function"), waits=waits, blas=blas)
        plain, named = unwrapped(args), unwrapped(kwargs)
        result = quietly(function, plain, named)
        fresh: list[tuple[int, np.ndarray]] = []
        counter = iter(range(len(leaves(result))))
        wrapped = _wrap(result, owners, counter, fresh)
        if fresh:
            m.counters.array_calls += 1

            def store(values: list[np.ndarray]) -> None:
                _store([(target, values[i]) for i, target in fresh])

            if put_off:
                streams.push(queue, lambda: store(leaves(quietly(function, plain, named))))
            else:
                done = leaves(result)
                streams.push(queue, lambda: store(done))
    return wrapped


def call_into(target: Any, function: Callable[..., Any], *args: Any, blas: str = "", **kwargs: Any) -> None:
    """Call a NumPy function and put its result into an array, of the same shape, when the stream gets there."""
    check_devices((target, args, kwargs))
    m = machine()
    with m.lock:
        queue, put_off = begin(getattr(function, "__name__", "a function"), blas=blas)
        plain, named, view = unwrapped(args), unwrapped(kwargs), target._view
        result = np.asarray(quietly(function, plain, named))
        if result.shape != view.shape:
            if np.broadcast_shapes(result.shape, view.shape) != view.shape or result.ndim > view.ndim:
                raise ValueError(
                    f"Out shape is mismatched: {view.shape} for a result of shape {result.shape}"
                )
        m.counters.array_calls += 1
        if put_off:
            streams.push(queue, lambda: _store([(view, quietly(function, plain, named))]))
        else:
            streams.push(queue, lambda: _store([(view, result)]))


def change(function: Callable[..., Any], *args: Any) -> None:
    """Queue a NumPy function that changes its first argument in place."""
    check_devices(args)
    with machine().lock:
        queue, _ = begin("a change")
        machine().counters.array_calls += 1
        plain = unwrapped(args)

        def work() -> None:
            quietly(function, plain, {})

        streams.push(queue, work)


def _store(pairs: list[tuple[np.ndarray, Any]]) -> None:
    for target, value in pairs:
        quietly(np.copyto, (target, value), {"casting": "unsafe"})


def _wrap(result: Any, owners: list[Any], counter: Iterator[int], fresh: list[tuple[int, np.ndarray]]) -> Any:
    """A result with device arrays; `fresh` gets the number and the memory of those that must be written."""
    from .array import check_dtype, ndarray

    if isinstance(result, (tuple, list)):
        parts = [_wrap(each, owners, counter, fresh) for each in result]
        return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
    number = next(counter)
    value = np.asarray(result)
    check_dtype(value.dtype)
    pointer = value.ctypes.data
    device = machine().device_of(pointer) if value.size else None
    if device is not None:
        for owner in owners:
            block = owner.data.mem
            if block.ptr <= pointer < block.ptr + max(block.size, 1):
                return ndarray._of(value, owner.data.mem)
    keep = "F" if value.flags.f_contiguous and not value.flags.c_contiguous else "C"
    array = ndarray(value.shape, value.dtype, order=keep)
    fresh.append((number, array._view))
    return array
