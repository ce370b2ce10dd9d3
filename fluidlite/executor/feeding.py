"""Feeds of a step: conversion to arrays, without copies if possible, and checks against the program's variables."""

from __future__ import annotations

import _thread
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._ext.collate import Handover
from ..backend import device_of, moved, on_device
from ..base.arrays import plain
from ..base.callsite import describe
from ..base.dtypes import VarType, to_numpy, to_vartype
from ..base.errors import FeedError
from ..base.lod import Lod
from ..base.selected_rows import SelectedRows
from ..framework import Program, Variable
from ..ops.registry import LEVEL
from ..ops.tensor.gather import parts
from .failures import shape_text
from .lod_tensor import LoDTensor, LoDTensorArray

if TYPE_CHECKING:
    from ..backend.cupy_.device import CudaDevice

Feed = dict[str, tuple[Any, Lod]]
"""Arrays (or SelectedRows) and the offsets of their sequences by name."""


def as_feed(program: Program, feed: Mapping[str, Any], checked: bool = True) -> Feed:
    """Arrays and levels of detail of the feeds that the program has variables for; others are ignored, as in Fluid.

    `checked`: whether dtypes and shapes are compared with the declared ones; see `check`.
    Raises TypeError for keys that are no strings, ValueError for a wrong dtype or shape, FeedError for values that no
    variable can hold, RuntimeError for lists.
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
        if isinstance(value, SelectedRows):
            out[name] = _matching(value, var), ()
            continue
        array, lod = as_array(value, var)
        if checked:
            check(var, array, lod)
        out[name] = array, lod
    return out


def expanded(feed: Feed) -> dict[str, Any]:
    """The arrays that a plan takes: those of the feed, with two for SelectedRows, then the offsets of sequences."""
    out: dict[str, Any] = {}
    for name, (value, _) in feed.items():
        if type(value) is SelectedRows:
            rows, values = parts(name)
            out[rows], out[values] = value.rows, value.values
        else:
            out[name] = value
    for name, (_, lod) in feed.items():
        for number, level in enumerate(lod):
            out[f"{name}{LEVEL}{number}"] = level
    return out


def unshared(feed: Any) -> Any:
    """A feed, or a list of them, whose arrays no thread writes while the step reads them.

    Arrays are copied as Fluid does, unless this is the only thread of the process. LoDTensors are not, as in Fluid.
    """
    if not _thread._count() and threading.get_ident() == threading.main_thread().ident:
        return feed
    if isinstance(feed, (list, tuple)):
        return [unshared(part) for part in feed]
    return {name: _unshared(value) for name, value in feed.items()} if isinstance(feed, Mapping) else feed


def _unshared(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.dtype.isnative and value.dtype.kind in "biuf":
        return _handover.copy(value)
    return value


_handover = Handover()


def as_array(value: Any, var: Variable) -> tuple[Any, Lod]:
    """A plain array of the host, or one of a GPU, and the levels of detail of one fed value.

    A number gets the dtype of the variable and one dimension, which an array or tensor without dimensions gets, too.
    Arrays keep their dtype, whatever the variable's. Raises FeedError for what holds no numbers of a type that tensors
    have, RuntimeError for a list.
    """
    if isinstance(value, LoDTensor):
        if value.array is None:
            raise FeedError(f"the LoDTensor fed as {var.name!r} has not been set")
        array = value.array
        if not value._ends_with_rows():
            raise FeedError(
                f"the LoDTensor fed as {var.name!r} has {value._rows()} rows, but its sequences end at "
                f"{value.offsets[-1][-1]}: set the levels of detail anew after other elements"
            )
        return _with_dimension(plain(array) if isinstance(array, np.ndarray) else array), value.offsets
    if isinstance(value, np.ndarray):
        array = value
    elif on_device(value):
        device = device_of(value)
        assert device is not None
        return _with_dimension(device.adopt(value)), ()
    elif isinstance(value, LoDTensorArray):
        array = np.array([np.asarray(tensor) for tensor in value])
    elif isinstance(value, list):
        raise RuntimeError(
            f"a list was fed as {var.name!r}: feed np.array(..., dtype={to_numpy(var.dtype).name!r}), "
            "fluid.create_lod_tensor for sequences, or a list of feeds for several devices"
        )
    elif np.isscalar(value):
        array = _number(value, var)
    else:
        array = _on_host(value, var)
    array = plain(array)
    try:
        to_vartype(array.dtype)
    except TypeError as error:
        raise FeedError(
            f"variable {var.name!r} was fed with {type(value).__name__} ({value!r:.60}): {error}; feed an array or a "
            "LoDTensor"
        ) from None
    return _with_dimension(array), ()


def _with_dimension(array: Any) -> Any:
    return array.reshape(1) if array.ndim == 0 else array


def _number(value: Any, var: Variable) -> np.ndarray:
    """A fed number, or one as text, as an array of one element of the variable's dtype; ValueError if it is none."""
    try:
        if isinstance(value, (complex, np.complexfloating)):
            raise ValueError("it is complex")
        return np.array([value]).astype(to_numpy(var.dtype))
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{value!r} was fed as variable {var.name!r}: {error}") from None


def _on_host(value: Any, var: Variable) -> np.ndarray:
    """Convert an array of another library to NumPy; raises TypeError with advice if it lives on a GPU."""
    try:
        return np.asarray(value)
    except ValueError as error:
        raise FeedError(f"cannot feed {var.name!r} with a {type(value).__name__}: {error}") from None
    except TypeError as error:
        if not hasattr(value, "__cuda_array_interface__"):
            raise
        raise TypeError(
            f"cannot feed {var.name!r} with a {type(value).__module__}.{type(value).__name__} of a GPU: feed "
            "fluid.core.from_dlpack(value), which shares its memory, or a copy of it on the host"
        ) from error


def placed(feed: Feed, device: CudaDevice | None) -> Feed:
    """The feed with all arrays on `device` (None: the host)."""
    return {name: (_placed(value, device), lod) for name, (value, lod) in feed.items()}


def _placed(value: Any, device: CudaDevice | None) -> Any:
    if device is None and type(value) is np.ndarray:
        return value
    if isinstance(value, SelectedRows):
        return SelectedRows(moved(value.rows, device), moved(value.values, device), value.height)
    return moved(value, device)


def _matching(value: SelectedRows, var: Variable) -> SelectedRows:
    if var.type != VarType.SELECTED_ROWS or value.dtype != to_numpy(var.dtype) or value.shape != var.shape:
        raise ValueError(
            f"{value!r} was fed as variable {var.name!r}, which is {var.type} of {var.dtype} {list(var.shape)}"
        )
    rows, values = (plain(a) if isinstance(a, np.ndarray) else a for a in (value.rows, value.values))
    return SelectedRows(rows, values, value.height)


def check(var: Variable, array: np.ndarray, lod: Lod) -> None:
    """Raise ValueError if `fluid.data` declared `var` with another dtype, fewer dimensions, or other sizes.

    What is fed may have fewer dimensions, as in Fluid: its sizes are compared with the first ones of the variable. So
    `[6]` goes for `[None, 1]`, and `[10, 10]` for `[None, 10, 10]`. Sequences may have any number of rows. A number,
    which is fed as an array of one element, goes for `[]`. Variables of `fluid.layers.data` take everything.
    """
    if not var.need_check_feed:
        return
    expected = to_numpy(var.dtype)
    if array.dtype != expected:
        raise ValueError(
            f"The data type of fed Variable {var.name!r} must be {expected.name!r}, but received {array.dtype.name!r}; "
            f"convert it with .astype({expected.name!r})"
        )
    sizes = (-1, *var.shape[1:]) if lod else var.shape or (1,)
    if len(sizes) < array.ndim or any(n not in (-1, m) for n, m in zip(sizes, array.shape, strict=False)):
        raise ValueError(
            f"{_mismatch(var, array)} on each device{_misfit(sizes, array.shape)}{describe(var.line, 'declared')}"
        )


def _mismatch(var: Variable, array: Any) -> str:
    return (
        f"The fed Variable {var.name!r} should have dimensions = {len(var.shape)}, "
        f"shape = {shape_text(var.shape)}, but received fed shape {list(array.shape)}"
    )


def _misfit(sizes: Sequence[int], fed: Sequence[int]) -> str:
    """The first axis whose size is wrong, if there are as many dimensions as declared."""
    if len(sizes) != len(fed):
        return f": it has {len(fed)} dimensions, not {len(sizes)}"
    axis = next(k for k, (n, m) in enumerate(zip(sizes, fed, strict=True)) if n not in (-1, m))
    return f": axis {axis} must have {sizes[axis]} elements, not {fed[axis]}"


def undeclared_ranks(program: Program, feed: Mapping[str, Any]) -> str:
    """A clause about each fed data variable that has another number of dimensions than declared; empty if none has."""
    known = program.global_block().vars
    found = []
    for name, value in feed.items():
        var = known.get(name)
        if var is None or not var.is_data or isinstance(value, SelectedRows):
            continue
        array, _ = as_array(value, var)
        if array.ndim != max(len(var.shape), 1):
            found.append(f"{_mismatch(var, array)}{describe(var.line, 'declared')}: ")
    return "".join(found)
