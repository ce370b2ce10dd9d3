"""`fluid.layers.utils`: flattening and packing nested lists, tuples and dicts.

The order of elements is that of lists and tuples, and that of the sorted keys of dicts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ...base.dtypes import VarType
from ...base.errors import ArgumentError
from ...framework import Variable
from ..layer_helper import LayerHelper
from ..small_modules import deprecated

__all__ = [
    "assert_same_structure",
    "convert_to_list",
    "copy_mutable_vars",
    "flatten",
    "hold_mutable_vars",
    "is_sequence",
    "map_structure",
    "pack_sequence_as",
]

compare_ops = ["__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"]
"""The methods that compare Variables (`fluid.layers.math_op_patch`)."""


def convert_to_list(value: Any, n: int, name: str, dtype: type = int) -> list[Any]:
    """`value` as a list of `n` elements: itself repeated if it is one `dtype`, or its elements.

    Raises ValueError naming `name` for another length, or what cannot be such a list.
    Follows `fluid.layers.utils.convert_to_list`.
    """
    if isinstance(value, dtype):
        return [value] * n
    try:
        elements = list(value)
    except TypeError:
        raise ArgumentError(f"The {name}'s type must be list or tuple. Received: {value}") from None
    if len(elements) != n:
        raise ArgumentError(f"The {name}'s length must be {n}. Received: {value}")
    for element in elements:
        try:
            dtype(element)
        except (ValueError, TypeError):
            raise ArgumentError(
                f"The {name}'s type must be a list or tuple of {n} {dtype}. Received: {value}, including {element!r} "
                f"of type {type(element)}"
            ) from None
    return elements


def is_sequence(seq: Any) -> bool:
    """Whether `seq` is a list, tuple, dict or other sequence but text (`fluid.layers.utils.is_sequence`)."""
    return isinstance(seq, dict) or (isinstance(seq, Sequence) and not isinstance(seq, str))


def flatten(nest: Any) -> list[Any]:
    """The elements of a nested structure in order; a list of `nest` alone if it is no sequence.

    Raises TypeError for dicts whose keys have no order. Follows `fluid.layers.utils.flatten`.
    """
    return list(_leaves(nest)) if is_sequence(nest) else [nest]


def _leaves(nest: Any) -> Iterator[Any]:
    for value in _values(nest):
        if is_sequence(value):
            yield from _leaves(value)
        else:
            yield value


def _values(nest: Any) -> list[Any]:
    if not isinstance(nest, Mapping):
        return list(nest)
    return [nest[key] for key in _sorted_keys(nest)]


def _sorted_keys(nest: Mapping[Any, Any]) -> list[Any]:
    try:
        return sorted(nest)
    except TypeError:
        raise TypeError("nest only supports dicts with sortable keys.") from None


def pack_sequence_as(structure: Any, flat_sequence: Sequence[Any]) -> Any:
    """The elements of `flat_sequence`, in order, in a structure like `structure` (`fluid.layers.utils`).

    Raises TypeError if `flat_sequence` is no sequence, ValueError if it has more or fewer elements.
    """
    if not is_sequence(flat_sequence):
        raise TypeError(f"flat_sequence must be a sequence, got {type(flat_sequence).__name__}")
    if not is_sequence(structure):
        if len(flat_sequence) != 1:
            raise ArgumentError(f"Structure is a scalar but len(flat_sequence) == {len(flat_sequence)} > 1")
        return flat_sequence[0]
    count = len(flatten(structure))
    if count != len(flat_sequence):
        raise ArgumentError(
            f"Could not pack sequence. Structure had {count} elements, but flat_sequence had {len(flat_sequence)} "
            f"elements. Structure: {structure}, flat_sequence: {flat_sequence}."
        )
    return _packed(structure, iter(flat_sequence))


def _packed(structure: Any, elements: Iterator[Any]) -> Any:
    made = [
        _packed(value, elements) if is_sequence(value) else next(elements) for value in _values(structure)
    ]
    if isinstance(structure, dict):
        by_key = dict(zip(_sorted_keys(structure), made, strict=True))
        return type(structure)((key, by_key[key]) for key in structure)
    if hasattr(structure, "_fields"):
        return type(structure)(*made)
    return type(structure)(made)  # type: ignore[call-arg]


def map_structure(func: Callable[..., Any], *structure: Any) -> Any:
    """Apply `func` to the elements of one structure, or of several in parallel; the result is built like the first.

    Follows `fluid.layers.utils.map_structure`, which does not compare the structures: see `assert_same_structure`.
    """
    results = [func(*elements) for elements in zip(*map(flatten, structure), strict=False)]
    return pack_sequence_as(structure[0], results)


def assert_same_structure(nest1: Any, nest2: Any, check_types: bool = True) -> None:
    """Raise if two structures differ: ValueError if in their elements, TypeError if in the types of sequences.

    `check_types=False` lets types and the keys of dicts differ. Follows `fluid.layers.utils.assert_same_structure`.
    """
    counts = len(flatten(nest1)), len(flatten(nest2))
    if counts[0] != counts[1]:
        raise ArgumentError(
            f"The two structures don't have the same number of elements. First structure ({counts[0]} elements): "
            f"{nest1}. Second structure ({counts[1]} elements): {nest2}"
        )
    _compare(nest1, nest2, check_types)


def _compare(one: Any, two: Any, check_types: bool) -> None:
    if is_sequence(one) != is_sequence(two):
        raise ArgumentError(
            f"The two structures don't have the same nested structure. First structure: {one}. Second structure: {two}."
        )
    if not is_sequence(one):
        return
    if check_types:
        if type(one) is not type(two):
            raise TypeError(
                "The two structures don't have the same sequence type. First structure has type "
                f"{type(one)}, while second structure has type {type(two)}."
            )
        if isinstance(one, dict) and set(one) != set(two):
            raise ArgumentError(
                "The two dictionaries don't have the same set of keys. First structure has keys "
                f"{set(one)}, while second structure has keys {set(two)}."
            )
    for mine, theirs in zip(_values(one), _values(two), strict=False):
        _compare(mine, theirs, check_types)


def copy_mutable_vars(structure: Any) -> Any:
    """`structure` with new lists and dicts, and the same elements in them (`fluid.layers.utils`)."""
    return pack_sequence_as(structure, flatten(structure))


def hold_mutable_vars(structure: Any) -> bool:
    """Whether `structure` contains a list, tuple or dict (`fluid.layers.utils.hold_mutable_vars`).

    Of a dict only the keys are considered, as in Fluid. Raises TypeError unless it has elements.
    """
    return any(is_sequence(item) for item in structure)


def _contain_var(list_or_tuple: Sequence[Any]) -> bool:
    """Whether a Variable is among the elements."""
    return any(isinstance(item, Variable) for item in list_or_tuple)


def _is_symmetric_padding(padding: Sequence[int], data_dim: int) -> bool:
    """Whether a convolution pads both sides equally; one number for each dimension always does."""
    if len(padding) not in (data_dim, 2 * data_dim):
        raise AssertionError(f"padding takes {data_dim} or {2 * data_dim} numbers, got {list(padding)}")
    return len(padding) == data_dim or list(padding[::2]) == list(padding[1::2])


@deprecated(since="0.15.0", instead="ParallelExecutor")
def get_places(device_count: int | None = None, device_type: str | None = None) -> Variable:
    """A variable that stands for `device_count` devices of a type, 'CPU' or 'CUDA'; of no use since Fluid 0.15."""
    helper = LayerHelper("get_places")
    places = helper.create_variable(name=helper._new_name(f"{helper.name}.out"), type=VarType.PLACE_LIST)
    attrs = {"device_count": int(device_count) if device_count else 0, "device_type": device_type or "AUTO"}
    helper.append_op(type="get_places", outputs={"Out": [places]}, attrs=attrs)
    return places


def replaced(value: Any, is_leaf: Callable[[Any], bool], by: Callable[[Any], Any]) -> Any:
    """`value` with `by(leaf)` in place of every leaf in its lists, tuples and dicts."""
    if is_leaf(value):
        return by(value)
    if isinstance(value, tuple):
        items = [replaced(item, is_leaf, by) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, list):
        return [replaced(item, is_leaf, by) for item in value]
    if isinstance(value, dict):
        return type(value)((key, replaced(item, is_leaf, by)) for key, item in value.items())
    return value
