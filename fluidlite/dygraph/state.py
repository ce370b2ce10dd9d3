"""State dicts of layers: gathering and restoring them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..base import callsite
from ..eager import Tensor, placing
from ..executor.tensors.lod_tensor import LoDTensor
from .members import Members

NAME_TABLE = "StructuredToParameterName@@"
"""The key in files of the table from structured names to parameters' names."""


def gather(layer: Members, into: dict[str, Any], prefix: str, include_sublayers: bool) -> dict[str, Any]:
    """Add the parameters and persistable buffers of `layer` to a dict by their names; returns it.

    Shared tensors are there under each of their names, so that each layer can be restored separately.
    """
    for name, parameter in layer._parameters.items():
        if parameter is not None:
            into[prefix + name] = parameter
    for name, buffer in layer._buffers.items():
        if buffer is not None and name not in layer._non_persistable_buffers:
            into[prefix + name] = buffer
    if include_sublayers:
        for name, inner in layer._sub_layers.items():
            if inner is not None:
                gather(inner, into, f"{prefix}{name}.", True)
    return into


def restore(targets: Mapping[str, Any], given: Any, structured: bool) -> None:
    """Copy the values in the dict `given` into `targets` (name -> tensor), all or none.

    `structured`: its keys are those of `targets`; otherwise they are the names of the tensors. Warns of unused names.
    Raises RuntimeError for a missing name, AssertionError, as in Fluid, for another shape or element type, TypeError if
    `given` is no dict; then nothing is changed.
    """
    wanted = _keyed(targets, structured)
    state = _checked(given)
    missing = [key for key in wanted if key not in state]
    if missing:
        raise RuntimeError(
            f"Parameter not found: the state dict has no {missing[0]!r}"
            + (f" (and {len(missing) - 1} more)" if len(missing) > 1 else "")
            + f"; its keys begin with {list(state)[:3]}. use_structured_name is {structured}: "
            + ("True takes names of attributes" if structured else "False takes names of parameters")
        )
    pairs = [(target, _fitting(target, key, state[key])) for key, target in wanted.items()]
    _warn_unused(state, wanted)
    for target, array in pairs:
        target.set_value(array)


def restore_what_fits(
    targets: Mapping[str, Any], given: Any, structured: bool
) -> tuple[list[str], list[str]]:
    """As `restore`, but values that are missing or do not fit are skipped, with a warning.

    Returns the names missing in `given` and the unused ones in it.
    """
    wanted = _keyed(targets, structured)
    state = _checked(given)
    missing, pairs = [], []
    for key, target in wanted.items():
        if key not in state:
            missing.append(key)
            callsite.warn(f"{key!r} is not in the state dict and keeps its value")
            continue
        try:
            pairs.append((target, _fitting(target, key, state[key])))
        except AssertionError as error:
            callsite.warn(f"{key!r} keeps its value: {error}")
    for target, array in pairs:
        target.set_value(array)
    return missing, [key for key in state if key not in wanted]


def _keyed(targets: Mapping[str, Any], structured: bool) -> dict[str, Any]:
    return dict(targets) if structured else {target.name: target for target in targets.values()}


def _checked(given: Any) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise TypeError(f"a state dict maps names to tensors or arrays, got a {type(given).__name__}")
    return {key: value for key, value in given.items() if key != NAME_TABLE}


def _fitting(target: Any, key: str, value: Any) -> Any:
    """The array to set; AssertionError if it does not fit `target`."""
    if not isinstance(target, Tensor):
        target.set_value(value)  # refuses: a variable of a program has no value yet
    if isinstance(value, (Tensor, LoDTensor)):
        value = value.array
    if not (isinstance(value, np.ndarray) or placing.on_device(value)):
        raise AssertionError(
            f"{key!r} in the state dict must be a tensor or a NumPy array, got {type(value).__name__}"
        )
    target.check_fits(value, f" ({key!r})")
    return value


def _warn_unused(state: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    unused = [str(key) for key in state if key not in wanted]
    if unused:
        callsite.warn(
            f"not used, because the layer has no parameter or buffer of that name: {', '.join(unused)}"
        )
