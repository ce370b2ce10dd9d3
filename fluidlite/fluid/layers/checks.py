"""Checks of arguments that many layers share."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from ...base.dtypes import FLOATS, VarType, to_numpy
from ...base.errors import ArgumentError, ArgumentTypeError, wrong_type
from ...eager import as_numbers
from ..layer_helper import check_variable

INTEGERS = (VarType.INT32, VarType.INT64)

FORMATS = {1: ("NCL", "NLC"), 2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}
"""The names of the layouts with channels second and with channels last, by the number of spatial axes."""


FLOAT_TYPES = tuple(sorted(FLOATS))


def alone(given: Any) -> Any:
    """The element of a list of one, else `given`: layers whose Fluid counterpart does not check accept both."""
    return given[0] if isinstance(given, (list, tuple)) and len(given) == 1 else given


def check_dtype(var: Any, name: str, layer: str, allowed: Sequence[VarType] = FLOAT_TYPES) -> None:
    """Raise TypeError unless argument `name` of `layer` is a Variable of one of the `allowed` dtypes (`wrong_type`)."""
    check_variable(var, name, layer)
    if var.dtype not in allowed:
        names = [str(to_numpy(kind)) for kind in allowed]
        raise wrong_type(var)(
            f"The data type of '{name}' in {layer} must be {names}, but received {to_numpy(var.dtype)}."
        )


def check_dtypes(layer: str, *allowed: VarType, **given: Any) -> None:
    """`check_dtype` for several arguments of `layer` by their names; by default they have to be floats."""
    for name, var in given.items():
        check_dtype(var, name, layer, allowed or FLOAT_TYPES)


def check_lists(layer: str, of: str = "", **given: Any) -> None:
    """Raise TypeError unless arguments of `layer` are lists or tuples; `of` says what of."""
    for name, value in given.items():
        if not isinstance(value, (list, tuple)):
            raise TypeError(f"'{name}' of {layer} must be a list{of and ' of '}{of}, got {value!r:.80}")


def numbers(value: Any, count: int, name: str, layer: str) -> list[int]:
    """`value`, an integer or `count` of them, as a list of `count` integers.

    Raises ValueError for another number of elements, ArgumentTypeError for anything else.
    """
    value = as_numbers(value)
    if isinstance(value, (list, tuple)):
        if len(value) == 1:
            value = list(value) * count
        if len(value) != count:
            raise ArgumentError(
                f"'{name}' of {layer} must be an integer or {count} of them, got {list(value)}"
            )
        items = list(value)
    else:
        items = [value] * count
    try:
        return [operator.index(item) for item in items]
    except TypeError:
        message = f"'{name}' of {layer} must be an integer or {count} of them, got {value!r}"
        raise ArgumentTypeError(message) from None


def check_choice(
    value: Any, name: str, choices: Sequence[Any], layer: str, error: type[ArgumentError] = ArgumentError
) -> None:
    """Raise ValueError, or an `error` that is one, unless argument `name` of `layer` is one of `choices`."""
    if value not in choices:
        raise error(f"'{name}' of {layer} must be one of {list(choices)}, got {value!r}")


def check_switch(value: Any, name: str, layer: str, error: type[ValueError] = ArgumentError) -> None:
    """Raise ValueError, or an `error` that is one, unless argument `name` of `layer` is True or False."""
    if not isinstance(value, bool):
        raise error(f"'{name}' of {layer} must be True or False, got {value!r}")


def paddings(padding: Any, dims: int, channels_last: bool, layer: str) -> tuple[list[int], str]:
    """The attributes `paddings` and `padding_algorithm` for the `padding` of a convolution or pooling layer.

    `padding` is an integer, one for each of `dims` spatial dimensions, a pair for each (as one list, or as a
    list of pairs with [0, 0] for batch and channels), or 'SAME' or 'VALID'. Raises ValueError for anything
    else.
    """
    if isinstance(padding, str):
        algorithm = padding.upper()
        if algorithm not in ("SAME", "VALID"):
            raise ArgumentError(f"Unknown padding: {padding!r}. It can only be 'SAME' or 'VALID'.")
        return [0] * dims, algorithm
    if isinstance(padding, (list, tuple)) and padding and isinstance(padding[0], (list, tuple)):
        pairs = [list(pair) for pair in padding]
        outer, inner = ([pairs[0], pairs[-1]], pairs[1:-1]) if channels_last else (pairs[:2], pairs[2:])
        if (
            len(pairs) != dims + 2
            or any(pair != [0, 0] for pair in outer)
            or any(len(pair) != 2 for pair in inner)
        ):
            raise ArgumentError(
                f"'padding' of {layer} must have a pair for each of {dims + 2} dimensions, with [0, 0] for batch and "
                f"channels, got {padding}"
            )
        padding = [side for pair in inner for side in pair]
    if isinstance(padding, (list, tuple)) and len(padding) == 2 * dims:
        sides = numbers(padding, 2 * dims, "padding", layer)
        if sides[::2] == sides[1::2]:
            return sides[::2], "EXPLICIT"
        return sides, "EXPLICIT"
    return numbers(padding, dims, "padding", layer), "EXPLICIT"


def padding_row(padding_idx: int | None, rows: int, layer: str) -> int:
    """The row of a table of `rows` rows that `padding_idx` of `layer` names, counted from the front; -1 for None.

    Raises ValueError for one outside of the table.
    """
    if padding_idx is None:
        return -1
    if not -rows <= padding_idx < rows:
        raise ArgumentError(f"padding_idx of {layer} must be in [{-rows}, {rows}), got {padding_idx}")
    return padding_idx % rows
