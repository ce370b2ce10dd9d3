"""What is fed to a step: arrays are checked against the program's variables and taken without copying if possible."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..base.dtypes import to_numpy
from ..base.place import Place
from ..framework import Program, Variable
from .failures import shape_text
from .lod_tensor import Lod, LoDTensor

Feed = dict[str, tuple[np.ndarray, Lod]]


def as_feed(program: Program, feed: Mapping[str, Any]) -> Feed:
    """Arrays and levels of detail of the feeds that the program has variables for; others are ignored, as in Fluid.

    Raises TypeError for what is no mapping, ValueError naming the variable, what it expects and what it got.
    """
    block = program.global_block()
    out: Feed = {}
    for name, value in feed.items():
        if not isinstance(name, str):
            raise TypeError(
                f"feed maps names of variables to data, got the key {name!r} of type {type(name).__name__}"
            )
        var = block.vars.get(name)
        if var is None:
            continue
        array, lod = as_array(value, var)
        check(var, array, lod)
        out[name] = array, lod
    return out


def as_array(value: Any, var: Variable) -> tuple[np.ndarray, Lod]:
    """A C-contiguous array and the levels of detail of one fed value; scalars get one dimension."""
    if isinstance(value, LoDTensor):
        if value.array is None:
            raise ValueError(f"the LoDTensor fed as {var.name!r} has not been set")
        return value.array, value._lod
    if isinstance(value, np.ndarray):
        array = value
    elif isinstance(value, (list, tuple)):
        if any(isinstance(item, LoDTensor) for item in value):
            raise TypeError(
                f"a list of LoDTensors was fed as {var.name!r}: feed one tensor, or a list of feeds for several devices"
            )
        try:
            array = np.array(value, dtype=to_numpy(var.dtype))
        except (ValueError, TypeError, OverflowError) as error:
            ragged = "inhomogeneous" in str(error)
            raise ValueError(
                f"the list fed as {var.name!r} {'is ragged and ' if ragged else ''}cannot become an array of "
                f"{to_numpy(var.dtype).name} ({error})"
                f"{'; use fluid.create_lod_tensor for sequences' if ragged else ''}"
            ) from None
    elif isinstance(value, (int, float, np.generic)):
        array = np.asarray(value, dtype=to_numpy(var.dtype) if not isinstance(value, np.generic) else None)
    elif hasattr(value, "__array__"):
        array = np.asarray(value)
    else:
        raise TypeError(
            f"cannot feed {var.name!r} with {type(value).__name__}: expected an array or a LoDTensor"
        )
    if array.ndim == 0:
        array = array.reshape(1)
    return np.ascontiguousarray(array), []


def check(var: Variable, array: np.ndarray, lod: Lod) -> None:
    """Raise ValueError unless dtype, rank and fixed dimensions are those of the variable (`fluid.data` asks for it)."""
    if array.dtype.kind not in "biuf":
        raise ValueError(
            f"variable {var.name!r} must be fed with numbers, got an array of dtype {array.dtype}"
        )
    if not (var.need_check_feed or var.is_data):
        return
    expected = to_numpy(var.dtype)
    if array.dtype != expected:
        raise ValueError(
            f"The data type of fed Variable {var.name!r} must be {expected.name!r}, but received {array.dtype.name!r}; "
            f"convert it with .astype({expected.name!r})"
        )
    fits = len(var.shape) == array.ndim and all(
        n in (-1, m) for n, m in zip(var.shape, array.shape, strict=True)
    )
    if not fits and not (lod and not var.need_check_feed):
        raise ValueError(
            f"The fed Variable {var.name!r} should have dimensions = {len(var.shape)}, "
            f"shape = {shape_text(var.shape)}, but received fed shape {list(array.shape)} on each device"
        )


def split(feed: Feed, places: list[Place]) -> list[Feed]:
    """One feed divided along the first dimension over the places, as evenly as Fluid does.

    Raises ValueError if there are fewer rows than places.
    """
    parts: list[Feed] = [{} for _ in places]
    count = len(places)
    for name, (array, lod) in feed.items():
        if lod:
            _split_sequences(name, array, lod, parts)
            continue
        rows = len(array)
        if rows < count:
            raise ValueError(
                f"variable {name!r} was fed with {rows} rows for {count} devices: every device needs at least one"
            )
        step, extra = divmod(rows, count)
        begin = 0
        for index, part in enumerate(parts):
            end = begin + step + (1 if index < extra else 0)
            part[name] = array[begin:end], []
            begin = end
    return parts


def _split_sequences(name: str, array: np.ndarray, lod: Lod, parts: list[Feed]) -> None:
    top = len(lod[0]) - 1
    if top < len(parts):
        raise ValueError(
            f"variable {name!r} was fed with {top} sequences for {len(parts)} devices: every device needs one"
        )
    step, extra = divmod(top, len(parts))
    begin = 0
    for index, part in enumerate(parts):
        end = begin + step + (1 if index < extra else 0)
        low, high, levels = begin, end, []
        for level in lod:
            levels.append([offset - level[low] for offset in level[low : high + 1]])
            low, high = level[low], level[high]
        part[name] = np.ascontiguousarray(array[low:high]), levels
        begin = end
