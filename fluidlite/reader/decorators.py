"""Readers from arrays, from files and from readers, without threads (`paddle.reader`, `fluid.io`)."""

from __future__ import annotations

import functools
import itertools
import math
import numbers
import operator
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from os import PathLike
from typing import Any

import numpy as np

from ..base import callsite
from ..base.errors import NotSupportedError, public


def describe(reader: Callable[[], Any]) -> str:
    """The name of a reader in messages: the name and line of the user's function."""
    while hasattr(reader, "__wrapped__"):
        reader = reader.__wrapped__
    if isinstance(reader, functools.partial):
        return describe(reader.func)
    name = getattr(reader, "__qualname__", None) or type(reader).__qualname__
    code = getattr(reader, "__code__", None)
    return f"{name}()" if code is None else f"{name}() ({code.co_filename}:{code.co_firstlineno})"


@contextmanager
def iterating(reader: Callable[[], Iterable[Any]]) -> Iterator[Iterator[Any]]:
    """Call `reader`, give an iterator over what it returns, and close that iterator at the end whatever
    happens.

    Raises TypeError naming the reader if it returns something else.
    """
    result = reader()
    if not hasattr(result, "__iter__") and not hasattr(result, "__getitem__"):
        raise TypeError(
            f"the reader {describe(reader)} returned {type(result).__name__}, expected an iterable of samples or "
            "batches: it should yield them, or return a generator or list"
        )
    iterator = iter(result)
    try:
        yield iterator
    finally:
        close = getattr(iterator, "close", None)
        if close is not None:
            close()


# Readers from readers, without threads (`paddle.reader`, `fluid.io`).
#
# A reader is a callable without arguments that returns an iterable of samples; a decorator returns another reader.

Reader = Callable[[], Iterable[Any]]

_END = object()


@public
class ComposeNotAligned(ValueError):
    """Readers given to `compose` did not yield the same number of samples."""


def check_reader(reader: Any, what: str) -> None:
    """Raise TypeError unless `reader` can be called."""
    if not callable(reader):
        raise TypeError(
            f"{what} takes a reader, a callable without arguments that returns an iterable, "
            f"got {type(reader).__name__}; for a list give lambda: the_list, for a generator its function"
        )


@public
class SizeError(ValueError, AssertionError):
    """A size below its least value."""


def whole(value: Any, what: str, least: int) -> int:
    """`value` as an int; TypeError if it is no whole number, SizeError if it is below `least`."""
    if isinstance(value, (float, np.floating)) and value.is_integer():
        value = int(value)
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{what} must be an integer, got {value!r} ({type(value).__name__})") from None
    if number < least:
        raise SizeError(f"{what} must be at least {least}, got {number}")
    return number


def room(value: Any, what: str) -> int:
    """The capacity of a buffer of this size: rounded up, and at least 1, as in Fluid.

    Raises TypeError unless it is a number.
    """
    if not isinstance(value, numbers.Real):
        raise TypeError(f"{what} must be a number, got {value!r} ({type(value).__name__})")
    size = float(value)
    return sys.maxsize if size >= sys.maxsize else max(math.ceil(size), 1)


def after(reader: Reader) -> Callable[[Reader], Reader]:
    """Mark a reader as made from `reader`, so that messages can name the user's own (see `describe`)."""
    return functools.wraps(reader, assigned=(), updated=())


def cache(reader: Reader) -> Reader:
    """A reader of what `reader` yields, read once, now, and kept in memory. Errors of `reader` are raised
    here.
    """
    check_reader(reader, "cache")
    samples = tuple(reader())

    @after(reader)
    def cached() -> Iterator[Any]:
        yield from samples

    return cached


def map_readers(func: Callable[..., Any], *readers: Reader) -> Reader:
    """A reader of `func(a, b, ...)` for the samples a, b, ... of the `readers`; it ends with the shortest."""
    for reader in readers:
        check_reader(reader, "map_readers")

    def mapped() -> Iterator[Any]:
        with ExitStack() as stack:
            yield from map(func, *[stack.enter_context(iterating(reader)) for reader in readers])

    return mapped


def shuffle(reader: Reader, buf_size: int) -> Reader:
    """A reader of the same samples in random order: each `buf_size` of them in a row are shuffled by
    `random`.
    """
    check_reader(reader, "shuffle")
    size = room(buf_size, "buf_size")
    import random  # slow to import

    @after(reader)
    def shuffled() -> Iterator[Any]:
        with iterating(reader) as samples:
            while buffer := list(itertools.islice(samples, size)):
                if len(buffer) > 1:
                    random.shuffle(buffer)
                yield from buffer

    return shuffled


def chain(*readers: Reader) -> Reader:
    """A reader of all samples of the first reader, then all of the second, and so on."""
    for reader in readers:
        check_reader(reader, "chain")

    def chained() -> Iterator[Any]:
        for reader in readers:
            with iterating(reader) as samples:
                yield from samples

    return chained


def compose(*readers: Reader, check_alignment: bool = True, **ignored: Any) -> Reader:
    """A reader of tuples that hold one sample of each reader; samples that are tuples are spliced in.

    With (1, 2), 3 and (4, 5) the result is (1, 2, 3, 4, 5). If the readers do not end together the new
    reader raises ComposeNotAligned, or ends with the shortest without `check_alignment`. Other keywords do nothing but
    warn, as Fluid takes them, too.
    """
    if ignored:
        callsite.warn(
            f"compose takes check_alignment, and ignores {', '.join(sorted(ignored))}", RuntimeWarning
        )
    for reader in readers:
        check_reader(reader, "compose")

    def composed() -> Iterator[tuple[Any, ...]]:
        with ExitStack() as stack:
            iterators = [stack.enter_context(iterating(reader)) for reader in readers]
            rows = (
                itertools.zip_longest(*iterators, fillvalue=_END)
                if check_alignment
                else zip(*iterators, strict=False)
            )
            for number, row in enumerate(rows):
                if check_alignment and any(item is _END for item in row):
                    over = [i for i, item in enumerate(row) if item is _END]
                    raise ComposeNotAligned(
                        f"outputs of readers are not aligned: reader(s) {over} ended after {number} samples, "
                        "before the rest; check_alignment=False drops surplus samples"
                    )
                yield tuple(itertools.chain.from_iterable(x if isinstance(x, tuple) else (x,) for x in row))

    return composed


def firstn(reader: Reader, n: int | None) -> Reader:
    """A reader of the first `n` samples; of all if `n` is None or -1."""
    check_reader(reader, "firstn")
    count = None if n is None or n == -1 else whole(n, "n", 0)

    @after(reader)
    def first() -> Iterator[Any]:
        with iterating(reader) as samples:
            yield from itertools.islice(samples, count)

    return first


def batch(reader: Reader, batch_size: int, drop_last: bool = False) -> Reader:
    """A reader of lists of samples (`paddle.batch`, `fluid.io.batch`).

    Args:
        reader: a function that returns an iterable of samples.
        batch_size: how many samples make a batch; fractions do not count.
        drop_last: leave out a last batch that is shorter; so does None, as in Fluid.

    Returns:
        A function that returns an iterator over lists of `batch_size` samples.

    Raises:
        ValueError: `batch_size` is less than 1.
        TypeError: `batch_size` is no number.

    Example:
        >>> import paddle.fluid as fluid
        >>> batches = fluid.io.batch(lambda: range(5), batch_size=2)
        >>> list(batches())
        [[0, 1], [2, 3], [4]]
    """
    check_reader(reader, "batch")
    size = int(batch_size)
    if size <= 0:
        raise ValueError(f"batch_size should be a positive integer value, but got batch_size={batch_size!r}")

    keep_last = drop_last is not None and not drop_last

    @after(reader)
    def batched() -> Iterator[list[Any]]:
        with iterating(reader) as samples:
            while rows := list(itertools.islice(samples, size)):
                if len(rows) == size or keep_last:
                    yield rows

    return batched


def np_array(x: Any) -> Reader:
    """A reader of the rows of an array (of the array itself if it has no dimensions)."""
    array = np.asarray(x)

    def rows() -> Iterator[Any]:
        yield from array if array.ndim else [array]

    return rows


def text_file(path: str | PathLike[str]) -> Reader:
    """A reader of the lines of a UTF-8 text file, without the ends of the lines."""

    def lines() -> Iterator[str]:
        with open(path, encoding="utf-8") as file:
            for line in file:
                yield line.rstrip("\n")

    return lines


def recordio(paths: Any, buf_size: int = 100) -> Reader:
    """RecordIO files cannot be read here: raises NotSupportedError."""
    raise NotSupportedError(
        f"recordio files ({paths!r:.80}) cannot be read by fluidlite; convert them to .npy or text files "
        "once and read those with paddle.reader.creator.np_array or text_file"
    )
