"""Iterables of `for` loops over tensors: ranges, rows, tensor arrays, and their `enumerate` and `zip`."""

from __future__ import annotations

from typing import Any

from .....base.dtypes import VarType
from .....base.errors import NotSupportedError
from .....framework import Variable
from ....layers import cast, elementwise_min, shape
from . import values
from .records import TensorRecords
from .values import here, is_tensor

_ZERO = 0


class Source:
    """Items by index."""

    def known(self) -> int | None:
        """The number of items if it is constant while the program is built, else None."""
        raise NotImplementedError

    def count(self) -> Variable:
        """The number of items, as an int64 Variable."""
        raise NotImplementedError

    def item(self, index: Any) -> Any:
        """The item at an index, an integer or an int64 Variable."""
        raise NotImplementedError

    def __iter__(self) -> Any:
        count = self.known()
        if count is None:
            raise NotSupportedError(
                f"the number of iterations is known only when the program runs{here()}: use `for`"
            )
        return iter([self.item(k) for k in range(count)])


class Range(Source):
    """`range` of tensors."""

    def __init__(self, *args: Any) -> None:
        self._start, stop, self._step = (0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]
        if is_tensor(self._step):
            raise NotSupportedError(f"the step of a range must be a number, got a tensor{here()}")
        if self._step == 0:
            raise ValueError("range() arg 3 must not be zero")
        self._start, self._stop = (
            values.as_number(cast(values.variable(end), VarType.INT64))
            if is_tensor(end)
            else int(end) or _ZERO
            for end in (self._start, stop)
        )

    def known(self) -> int | None:
        return None

    def count(self) -> Variable:
        first, last = (self._start, self._stop) if self._step > 0 else (self._stop, self._start)
        distance = last if first is _ZERO else last - first
        size = abs(self._step)
        return values.variable(distance if size == 1 else (distance + (size - 1)) // size, VarType.INT64)

    def item(self, index: Any) -> Any:
        number = index if self._step == 1 else index * self._step
        return number if self._start is _ZERO else number + self._start


class Rows(Source):
    """A tensor along its first dimension."""

    def __init__(self, tensor: Any) -> None:
        self._tensor = values.variable(tensor)
        if not self._tensor.shape:
            raise TypeError(f"cannot iterate over a tensor without dimensions{here()}")

    def known(self) -> int | None:
        return None if self._tensor.shape[0] < 0 else self._tensor.shape[0]

    def count(self) -> Variable:
        return cast(shape(self._tensor)[0], VarType.INT64)

    def item(self, index: Any) -> Any:
        return self._tensor[index]


class Elements(Source):
    """A list that has become a tensor array."""

    def __init__(self, array: values.TensorList | TensorRecords) -> None:
        self._array = array

    def known(self) -> int | None:
        return None

    def count(self) -> Variable:
        return self._array.length()

    def item(self, index: Any) -> Any:
        return self._array[index]


class Numbered(Source):
    """`enumerate` of another source."""

    def __init__(self, inner: Source, start: Any = 0) -> None:
        self._inner, self._start = inner, start

    def known(self) -> int | None:
        return self._inner.known()

    def count(self) -> Variable:
        return self._inner.count()

    def item(self, index: Any) -> Any:
        return index + self._start, self._inner.item(index)


class Items(Source):
    """A Python sequence that is zipped with tensors."""

    def __init__(self, items: Any) -> None:
        self._items = list(items)

    def known(self) -> int | None:
        return len(self._items)

    def item(self, index: Any) -> Any:
        return self._items[index]


class Together(Source):
    """`zip` of several sources."""

    def __init__(self, inner: list[Source]) -> None:
        self._inner = inner

    def known(self) -> int | None:
        counts = [one.known() for one in self._inner]
        return None if None in counts else min(counts)  # type: ignore[type-var]

    def count(self) -> Variable:
        counts = [one.count() for one in self._inner]
        least = counts[0]
        for count in counts[1:]:
            least = elementwise_min(least, count)
        return least

    def item(self, index: Any) -> Any:
        return tuple([one.item(index) for one in self._inner])


def of(iterable: Any) -> Source | None:
    """The Source of an iterable; None if it is an ordinary Python iterable."""
    if isinstance(iterable, Source):
        return iterable
    if isinstance(iterable, (values.TensorList, TensorRecords)):
        return Elements(iterable)
    if is_tensor(iterable):
        return Rows(iterable)
    return None
