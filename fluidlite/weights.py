"""Weights in files of the safetensors format, and under the names of other frameworks."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .base.errors import FormatError, NotSupportedError
from .base.storage.files import write_file
from .executor import LoDTensor, Scope, global_scope
from .framework import Program

__all__ = ["load", "program_state", "renamed", "save"]

_KINDS = {
    "F64": "float64", "F32": "float32", "F16": "float16", "I64": "int64", "I32": "int32", "I16": "int16",
    "I8": "int8", "U64": "uint64", "U32": "uint32", "U16": "uint16", "U8": "uint8", "BOOL": "bool",
}  # fmt: skip

Rules = Mapping[str, Any] | str | os.PathLike[str]


def _safetensors() -> Any:
    try:
        import safetensors.numpy
    except ImportError:
        raise NotSupportedError(
            "safetensors files are read and written with the package safetensors, which is not installed: "
            "pip install 'fluidlite[weights]' (or safetensors)"
        ) from None
    return safetensors


def save(
    path: str | os.PathLike[str],
    state: Mapping[str, Any],
    names: Rules | None = None,
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write arrays by name as a safetensors file, all of it or nothing.

    Args:
        path: the file; its folder is made if need be.
        state: what `state_dict()`, `load_program_state` or `program_state` gave: tensors, LoDTensors or arrays.
        names: the names that they have in the file, see `renamed`.
        metadata: texts to keep in the header.

    Raises TypeError for a value that is no array of numbers, or of a type that the format does not have, and for
    arguments in another order; ValueError for two tensors that would have one name.
    """
    if isinstance(path, Mapping) or not isinstance(state, Mapping):
        raise TypeError(
            f"weights.save takes the path and then the state, a dict of arrays, got {type(path).__name__} and "
            f"{type(state).__name__}"
        )
    arrays = {name: _array(name, value) for name, value in state.items()}
    arrays = renamed(arrays, names) if names is not None else arrays
    ready = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    content = _safetensors().numpy.save(ready, dict(metadata) if metadata else None)
    write_file(path, content)


def load(path: str | os.PathLike[str], names: Rules | None = None) -> dict[str, np.ndarray]:
    """The arrays of a safetensors file by name; BF16 becomes float32.

    `names` are the same rules that `save` takes: they are followed backwards, so that a file with the names of another
    framework gives a state dict for `set_dict` or `fluid.set_program_state`.

    Raises FormatError, naming the file, if it is damaged or no such file; OSError as `open` does.
    """
    what, package = os.fspath(path), _safetensors()
    try:
        entries = package.deserialize(Path(path).read_bytes())
    except package.SafetensorError as error:
        raise FormatError(f"{what} is not a safetensors file, or a damaged one: {error}") from None
    found = {name: _read(what, name, **entry) for name, entry in entries}
    return renamed(found, names, backwards=True) if names is not None else found


def _read(what: str, name: str, dtype: str, shape: list[int], data: bytearray) -> np.ndarray:
    if dtype == "BF16":
        bits = np.frombuffer(data, "<u2").reshape(shape)
        return (bits.astype(np.uint32) << 16).view(np.float32)
    if dtype not in _KINDS:
        raise FormatError(
            f"{what}: tensor {name!r} has elements of type {dtype!r}, which NumPy does not have"
        )
    kind = np.dtype(_KINDS[dtype])
    return np.frombuffer(data, kind.newbyteorder("<")).astype(kind).reshape(shape)


def _array(name: str, value: Any) -> np.ndarray:
    array = np.asarray(value.numpy() if hasattr(value, "numpy") else value)
    if array.dtype.name not in _KINDS.values():
        raise TypeError(
            f"{name!r} cannot be saved: expected an array of numbers, got {array.dtype} of {type(value).__name__}"
        )
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def program_state(program: Program, scope: Scope | None = None) -> dict[str, np.ndarray]:
    """Copies by name of all persistable variables of a program with a value: parameters, moving statistics.

    They come from `scope`, by default the global one. `fluid.set_program_state` puts such a dict into a program.
    """
    held = scope or global_scope()
    found = {}
    for var in program.list_vars():
        kept = held.find_var(var.name) if var.persistable else None
        value = kept.get() if kept is not None and kept.is_set() else None
        if isinstance(value, LoDTensor) and value._is_initialized():
            found[var.name] = np.array(value)
    return found


def renamed(state: Mapping[str, np.ndarray], rules: Rules, backwards: bool = False) -> dict[str, np.ndarray]:
    """A state dict under other names.

    Args:
        state: arrays by name.
        rules: a dict, or a JSON file with one: each name here with the name there, or with
            `{"name": ..., "transpose": true}` for a matrix that is the other way round there, as PyTorch has the
            weights of linear layers. A `*` in both names stands for the same text. The first rule that fits counts;
            what none fits keeps its name.
        backwards: the names of `state` are those there.

    Raises ValueError for two arrays that would have one name, a `*` on one side alone, and a `transpose` of anything
    but a matrix; FormatError for a file that is no JSON object of this form.
    """
    found: dict[str, np.ndarray] = {}
    table = [_rule(here, there, backwards) for here, there in _rules(rules).items()]
    for name, array in state.items():
        new = name
        for pattern, goal, transposed in table:
            fits = pattern.fullmatch(name)
            if fits:
                new = goal.replace("*", fits.group(1)) if fits.groups() else goal
                if transposed and array.ndim != 2:
                    raise ValueError(
                        f"{name!r} cannot be transposed: expected a matrix, got shape {list(array.shape)}"
                    )
                array = np.ascontiguousarray(array.T) if transposed else array
                break
        if new in found:
            raise ValueError(f"two tensors would be called {new!r}; {name!r} is the second")
        found[new] = array
    return found


def _rules(rules: Rules) -> Mapping[str, Any]:
    if isinstance(rules, Mapping):
        return rules
    try:
        read = json.loads(Path(rules).read_text(encoding="utf8"))
    except ValueError as error:
        raise FormatError(f"{os.fspath(rules)} is not JSON: {error}") from None
    if not isinstance(read, dict):
        raise FormatError(
            f"{os.fspath(rules)} should hold a JSON object of names, but holds a {type(read).__name__}"
        )
    return read


def _rule(here: str, there: Any, backwards: bool) -> tuple[re.Pattern[str], str, bool]:
    transposed = bool(there.get("transpose")) if isinstance(there, Mapping) else False
    name = there.get("name", here) if isinstance(there, Mapping) else there
    if not isinstance(name, str):
        raise FormatError(f"the rule for {here!r} should be a name, or have one, but is {there!r}")
    if here.count("*") != name.count("*") or here.count("*") > 1:
        raise ValueError(f"the rule from {here!r} to {name!r} should have one * on both sides, or none")
    source, goal = (name, here) if backwards else (here, name)
    return re.compile(re.escape(source).replace(r"\*", "(.*)")), goal, transposed
