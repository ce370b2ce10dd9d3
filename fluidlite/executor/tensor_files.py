"""Tensors in binary files, as Fluid writes them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import BinaryIO

from ..backend import to_host
from ..base.errors import FormatError
from ..base.storage import messages
from .lod_tensor import LoDTensor


def write_tensor(file: BinaryIO, tensor: LoDTensor) -> None:
    """Append `tensor` (elements and levels of detail) to a binary file.

    A tensor without dimensions is written with shape [1], as Fluid has none. Raises ValueError if it was
    never set, TypeError for an element type that Fluid cannot hold.
    """
    if tensor.array is None:
        raise ValueError("a LoDTensor that has not been set cannot be written: it holds no elements")
    messages.write(file, to_host(tensor.array), tensor.offsets)


def read_tensors(file: BinaryIO, names: Sequence[str], what: str | os.PathLike[str]) -> dict[str, LoDTensor]:
    """The tensors of a binary file that holds exactly one for each of `names`, in that order.

    `what` names the file in errors. Raises FormatError if the file holds fewer or more, is cut off, or is no
    such file.
    """
    reader = messages.Reader(file, os.fspath(what))
    tensors = {}
    for number, name in enumerate(names):
        if number and reader.left == 0:
            raise FormatError(
                f"{what} ends after {number} tensors, expected {len(names)}: {name!r} and what follows are not in it. "
                "It was saved with fewer variables"
            )
        tensors[name] = LoDTensor.wrap(*reader.tensor(name))
    if reader.left:
        raise FormatError(
            f"{what} has {reader.left} bytes after its {len(names)} tensor{'s' if len(names) != 1 else ''}: "
            "expected its end. It was saved with more variables, or is not a file of tensors as Fluid writes them"
        )
    return tensors
