"""Ranges, rows, tensor arrays, `enumerate` and `zip` of loops over tensors, and the lists that loops fill.

A growing list of lists, tuples and dicts of tensors is a structure of arrays: a tensor array for each leaf.
"""

from __future__ import annotations

from typing import Any

from .....base.dtypes import VarType
from .....base.errors import NotSupportedError
from .....framework import Variable
from ....layers import cast, elementwise_min, shape
from ....layers.utils import replaced
from . import values
from .values import TensorList, here, is_scalar, is_tensor

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


class TensorRecords:
    """A list of containers of equal structure, with one `TensorList` for each leaf.

    If some elements are tensors and others lists of their rows (states that begin as one tensor for all layers), all
    become lists of rows.
    """

    def __init__(self, items: list[Any], form: Any) -> None:
        leaves = [_leaves(item, form) for item in items]
        arrays = [grown_list([row[k] for row in leaves]) for k in range(len(leaves[0]))]
        self._form = form
        self.arrays: list[TensorList] = arrays

    def append(self, item: Any) -> None:
        """Append an element."""
        for array, leaf in zip(self.arrays, _leaves(item, self._form), strict=True):
            array.append(leaf)

    def extend(self, items: Any) -> None:
        """Append all of `items`."""
        for item in items:
            self.append(item)

    def length(self) -> Variable:
        """The number of elements, as a Variable."""
        return self.arrays[0].length()

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            part = TensorRecords.__new__(TensorRecords)
            part._form, part.arrays = self._form, [array.part(index) for array in self.arrays]
            return part
        arrays = iter(self.arrays)
        return replaced(self._form, lambda part: part is _LEAF, lambda _: next(arrays)[index])

    def __setitem__(self, index: Any, item: Any) -> None:
        for array, leaf in zip(self.arrays, _leaves(item, self._form), strict=True):
            array[index] = leaf

    __iter__ = TensorList.__iter__
    __len__ = TensorList.__len__

    def __bool__(self) -> bool:
        return True


class _Leaf:
    """The type of `_LEAF`, which marks a tensor in a form."""


_LEAF = _Leaf()


def growing(label: str, now: list[Any], later: list[Any]) -> TensorList | TensorRecords:
    """A tensor array, or several, with the items `now` of a list that items such as `later` are appended to."""
    every = [*now, *later]
    if all(is_tensor(item) or is_scalar(item) for item in every):
        return grown_list(now, later)
    form: Any = None
    try:
        for item in every:
            form = _form(item) if form is None else _finer(form, item)
        for item in every:
            _leaves(item, form)
    except _Unlike:
        raise NotSupportedError(
            f"{label} changes its length in a branch or loop that depends on tensors{here()}: only "
            "lists of tensors, or of containers of tensors of equal structure, can do that, by append"
        ) from None
    return TensorRecords(now, form) if now else _empty(form, later)


def at(items: Any, index: Any) -> Any:
    """`items[index]`, also for a Python list and a tensor as the index."""
    if type(items) is not list or not items or not isinstance(index, Variable) or not is_tensor(index):
        return items[index]
    array = growing("a list that a tensor chooses from", items, [])
    return array[index]


def grown_list(now: list[Any], later: list[Any] | None = None) -> TensorList:
    """A tensor array with the elements `now`; its type and shape fit `later` as well."""
    every = [*now, *(later or ())]
    first = next((item for item in every if isinstance(item, Variable)), None)
    kind = first.dtype if first is not None else values.kind_of(every[0])
    array = values.tensor_list(now, kind)
    if first is not None:
        shapes = [item.shape for item in every if isinstance(item, Variable)]
        same_rank = all(len(shape) == len(shapes[0]) for shape in shapes)
        array._shape = (
            tuple([sizes[0] if len(set(sizes)) == 1 else -1 for sizes in zip(*shapes, strict=True)])
            if same_rank
            else tuple(first.shape)
        )
    return array


def _empty(form: Any, later: list[Any]) -> TensorRecords:
    leaves = [_leaves(item, form) for item in later]
    records = TensorRecords.__new__(TensorRecords)
    records._form = form
    records.arrays = [grown_list([], [row[k] for row in leaves]) for k in range(len(leaves[0]))]
    return records


class _Unlike(Exception):
    """The elements of a list differ in structure."""


def _form(item: Any) -> Any:
    """The containers of an element, with `_LEAF` for tensors."""
    if is_tensor(item) or is_scalar(item):
        return _LEAF
    if isinstance(item, dict):
        return type(item)((key, _form(value)) for key, value in item.items())
    if type(item) in (list, tuple) and item:
        return type(item)([_form(value) for value in item])
    raise _Unlike


def _finer(form: Any, item: Any) -> Any:
    """The common form of `form` and an element: where one has a tensor and the other a list of rows, the list."""
    if form is _LEAF:
        other = _form(item)
        return other if other is _LEAF or isinstance(other, (list, tuple)) else _unlike()
    if is_tensor(item) and isinstance(form, (list, tuple)):
        return form
    if isinstance(form, dict) and isinstance(item, dict) and form.keys() == item.keys():
        return type(form)((key, _finer(form[key], item[key])) for key in form)
    if type(form) is type(item) and isinstance(form, (list, tuple)) and len(form) == len(item):
        return type(form)([_finer(one, other) for one, other in zip(form, item, strict=True)])
    return _unlike()


def _unlike() -> Any:
    raise _Unlike


def _leaves(item: Any, form: Any) -> list[Any]:
    """The tensors of an element in the order of the form's leaves."""
    if form is _LEAF:
        return [item] if is_tensor(item) or is_scalar(item) else _unlike()
    if isinstance(form, dict):
        if not isinstance(item, dict) or form.keys() != item.keys():
            _unlike()
        return [leaf for key in form for leaf in _leaves(item[key], form[key])]
    if is_tensor(item):
        rows = values.variable(item)
        if isinstance(rows, TensorList) or not rows.shape or rows.shape[0] != len(form):
            _unlike()
        return [leaf for k, part in enumerate(form) for leaf in _leaves(rows[k], part)]
    if not isinstance(item, (list, tuple)) or len(item) != len(form):
        _unlike()
    return [leaf for one, part in zip(item, form, strict=True) for leaf in _leaves(one, part)]
