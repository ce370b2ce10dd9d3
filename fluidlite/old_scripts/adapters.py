"""Adapters for existing functions whose arguments have changed, for calls by the user's code.

Each adapter first tries the call as it is where that may succeed.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Generator, Set
from typing import Any

import numpy as np

from .notes import note

Adapter = Callable[..., Any]


def _array(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    try:
        return function(*args, **kwargs)
    except OverflowError:
        if len(args) < 2 and "dtype" not in kwargs:
            raise
        note(
            f"np.{function.__name__} of integers out of range", "np.array(x).astype(dtype)", sys._getframe(1)
        )
        dtype = args[1] if len(args) > 1 else kwargs["dtype"]
        return np.array(args[0] if args else kwargs["object"]).astype(dtype)
    except ValueError as error:
        if "inhomogeneous" in str(error) and len(args) < 2 and "dtype" not in kwargs:
            note(f"np.{function.__name__} of rows of different length", "dtype=object", sys._getframe(1))
            return function(*args, **kwargs, dtype=object)
        if kwargs.get("copy") is False:
            note("np.array(copy=False) that copies", "np.asarray(x)", sys._getframe(1))
            return function(*args, **{**kwargs, "copy": None})
        raise


def _integer(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    try:
        return function(*args, **kwargs)
    except OverflowError:
        note(
            f"np.{function.__name__} of a number out of range", "np.array(x).astype(dtype)", sys._getframe(1)
        )
        return np.array(*args, **kwargs).astype(function)[()]


def _fromstring(
    function: Callable[..., Any], string: Any, dtype: Any = float, count: int = -1, **kwargs: Any
) -> Any:
    if kwargs.get("sep"):
        return function(string, dtype, count, **kwargs)
    note("np.fromstring of bytes", "np.frombuffer(data, dtype)", sys._getframe(1))
    data = string.encode("latin1") if isinstance(string, str) else string
    return np.frombuffer(data, dtype, count).copy()


def _keyword(old: str, new: str) -> Adapter:
    """An adapter for a keyword of NumPy that is now called `new`."""

    def adapter(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except TypeError:
            if old not in kwargs:
                raise
        note(f"np.{function.__name__}({old}=)", f"{new}=", sys._getframe(1))
        kwargs[new] = kwargs.pop(old)
        return function(*args, **kwargs)

    return adapter


def _stack(function: Callable[..., Any], arrays: Any, *args: Any, **kwargs: Any) -> Any:
    if hasattr(arrays, "__next__"):
        note(f"np.{function.__name__} of an iterator", "a list", sys._getframe(1))
        arrays = list(arrays)
    return function(arrays, *args, **kwargs)


def _sum(function: Callable[..., Any], a: Any, *args: Any, **kwargs: Any) -> Any:
    if args or kwargs or not isinstance(a, Generator):
        return function(a, *args, **kwargs)
    note("np.sum of a generator", "sum", sys._getframe(1))
    return sum(a)


def _cross(function: Callable[..., Any], a: Any, b: Any, *args: Any, **kwargs: Any) -> Any:
    try:
        return function(a, b, *args, **kwargs)
    except ValueError:
        vectors = [np.asarray(each) for each in (a, b)]
        short = [each.ndim > 0 and each.shape[-1] == 2 for each in vectors]
        if args or kwargs or not any(short):
            raise
    note("np.cross of vectors of two elements", "vectors of three", sys._getframe(1))
    pairs = zip(vectors, short, strict=True)
    whole = [np.append(each, np.zeros_like(each[..., :1]), axis=-1) if two else each for each, two in pairs]
    found = function(*whole)
    return found[..., 2] if all(short) else found


def _add_argument(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    text = kwargs.get("help")
    try:
        return function(*args, **kwargs)
    except ValueError:
        if not isinstance(text, str):
            raise
        escaped = re.sub(r"%(%|\(\w+\)[a-z])?", lambda found: found[0] if found[1] else "%%", text)
        if escaped == text:
            raise
    note("'%' in a help text of argparse", "'%%'", sys._getframe(1))
    return function(*args, **{**kwargs, "help": escaped})


def _json(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    if "encoding" in kwargs and "cls" not in kwargs:
        note(f"json.{function.__name__}(encoding=)", "no encoding=", sys._getframe(1))
        del kwargs["encoding"]
    return function(*args, **kwargs)


def _yaml(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    if len(args) + len(kwargs) == 1 and "Loader" not in kwargs:
        note(f"yaml.{function.__name__}(stream)", f"yaml.full_{function.__name__}(stream)", sys._getframe(1))
        return function(*args, **kwargs, Loader=sys.modules["yaml"].FullLoader)
    return function(*args, **kwargs)


def _open(function: Callable[..., Any], file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
    if isinstance(mode, str) and "U" in mode:
        note(f"open(mode={mode!r})", "mode='r'", sys._getframe(1))
        mode = mode.replace("U", "")
        mode = mode if "r" in mode else f"r{mode}"
    return function(file, mode, *args, **kwargs)


def _sample(function: Callable[..., Any], population: Any, *args: Any, **kwargs: Any) -> Any:
    if isinstance(population, Set):
        note("random.sample of a set", "random.sample(sorted(population), k)", sys._getframe(1))
        population = tuple(population)
    return function(population, *args, **kwargs)


def _shuffle(function: Callable[..., Any], x: Any, random: Callable[[], float] | None = None) -> None:
    if random is None:
        function(x)
        return
    note("random.shuffle(x, random)", "random.Random(seed).shuffle(x)", sys._getframe(1))
    for i in range(len(x) - 1, 0, -1):
        j = int(random() * (i + 1))
        x[i], x[j] = x[j], x[i]


def _whole(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    try:
        return function(*args, **kwargs)
    except TypeError:
        if not any(isinstance(arg, float) for arg in args) or not all(arg == int(arg) for arg in args):
            raise
        note(f"random.{function.__name__} of floats", "integers", sys._getframe(1))
        return function(*map(int, args), **kwargs)


_NUMPY: dict[str, Adapter] = {
    **dict.fromkeys(("array", "asarray", "asanyarray"), _array),
    **dict.fromkeys([f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)], _integer),
    **dict.fromkeys(("vstack", "hstack", "dstack", "stack", "column_stack", "concatenate"), _stack),
    **dict.fromkeys(
        ("percentile", "nanpercentile", "quantile", "nanquantile"), _keyword("interpolation", "method")
    ),
    "fromstring": _fromstring,
    "histogram": _keyword("normed", "density"),
    "reshape": _keyword("newshape", "shape"),
    "sum": _sum,
    "cross": _cross,
}

ADAPTED: dict[str, Adapter] = {
    **{f"numpy.{name}": adapter for name, adapter in _NUMPY.items()},
    **dict.fromkeys(("yaml.load", "yaml.load_all"), _yaml),
    **dict.fromkeys(("json.load", "json.loads"), _json),
    **dict.fromkeys(("_io.open", "io.open"), _open),
    **dict.fromkeys(("random.randint", "random.randrange"), _whole),
    "random.sample": _sample,
    "random.shuffle": _shuffle,
    "argparse.add_argument": _add_argument,
}
"""The adapter of each changed function, by module and name."""
