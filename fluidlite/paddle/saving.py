"""Plain data in files: `paddle.save`, `paddle.load`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ..base.storage.files import make_folder
from ..eager import Tensor, placing
from ..fluid.dygraph.members import NAME_TABLE
from ..fluid.io.pickles import parse_pickle, pickled, write_pickle

__all__ = ["load", "save"]


def save(obj: Any, path: str | os.PathLike[str] | BinaryIO, protocol: int = 4, **configs: Any) -> None:
    """Save a state dict, or other plain data with tensors in it, to the file `path` (`paddle.save`).

    Args:
        obj: tensors, arrays, numbers, strings, and dicts, lists and tuples of these.
        path: the file's whole name; folders are made if need be. The file is replaced at once or not at all. Or
            something to write bytes to, such as io.BytesIO.
        protocol: accepted; files are written so that every Paddle reads them.
        configs: accepted.

    Raises:
        TypeError: something else in `obj`; says where. ValueError: `path` ends with a separator. OSError as `open`
            does.
    """
    plain = _plain(obj, "the object")
    if isinstance(obj, Mapping) and obj and all(isinstance(value, Tensor) for value in obj.values()):
        # As Paddle does for state dicts of layers: its names for the parameters go along.
        plain[NAME_TABLE] = {key: value.name for key, value in obj.items()}
    if not isinstance(path, (str, os.PathLike)):
        path.write(pickled(plain))
        return
    name = os.fspath(path)
    if not os.path.basename(name):
        raise ValueError(f"path must end with the name of a file, got {name!r}")
    if os.path.dirname(name):
        make_folder(os.path.dirname(name))
    write_pickle(name, plain)


def _plain(value: Any, where: str) -> Any:
    """`value` with arrays in place of tensors."""
    if isinstance(value, Tensor):
        return value._on_host
    if isinstance(value, Mapping):
        return {key: _plain(item, f"{where}[{key!r}]") for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)([_plain(item, f"{where}[{index}]") for index, item in enumerate(value)])
    if isinstance(value, (np.ndarray, np.generic, bool, int, float, complex, str, bytes, type(None))):
        return value
    raise TypeError(
        f"paddle.save takes tensors, arrays, numbers, strings and dicts, lists or tuples of these; {where} is of type "
        f"{type(value).__name__}. Save layer.state_dict() of a layer, and pickle other objects yourself"
    )


def load(path: str | os.PathLike[str] | BinaryIO, **configs: Any) -> Any:
    """Read a file of `paddle.save`, of this package or Paddle 2 (`paddle.load`). No code in the file is executed.

    Args:
        path: the file, or something to read its bytes from.
        configs: `return_numpy=True`: arrays instead of tensors; `keep_name_table=True`: with the names of the
            parameters that state dicts also hold.

    Raises:
        FileNotFoundError: no such file. FormatError (an EnforceNotMet and ValueError): damaged, or no plain data.
    """
    if isinstance(path, (str, os.PathLike)):
        file = Path(path)
        if not file.is_file() and file.with_name(file.name + ".pdparams").is_file():
            raise FileNotFoundError(f"no file {file}; did you mean {file}.pdparams?")
        data = file.read_bytes()
    else:
        data = path.read()
    found = parse_pickle(data, str(path), "a file as paddle.save writes it")
    if isinstance(found, dict) and not configs.get("keep_name_table"):
        found.pop(NAME_TABLE, None)
    return found if configs.get("return_numpy") else _tensors(found)


def _tensors(value: Any) -> Any:
    """`value` with tensors in place of arrays; Paddle 2 writes (name, array) for those of state dicts."""
    if isinstance(value, np.ndarray):
        return Tensor(placing.to_default_device(np.array(value, order="C", ndmin=1)))
    if isinstance(value, dict):
        return {key: _tensors(item) for key, item in value.items()}
    if (
        isinstance(value, tuple)
        and len(value) == 2
        and isinstance(value[0], str)
        and isinstance(value[1], np.ndarray)
    ):
        return Tensor(placing.to_default_device(np.array(value[1], order="C", ndmin=1)), name=value[0])
    if isinstance(value, (list, tuple)):
        return type(value)([_tensors(item) for item in value])
    return value
