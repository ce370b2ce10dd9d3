"""Readers from arrays and files (`paddle.reader.creator`)."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from typing import Any

import numpy as np

from ..base.errors import NotSupportedError
from .decorators import Reader


def np_array(x: Any) -> Reader:
    """A reader of the rows of an array (of the array itself if it has no dimensions)."""
    array = np.asarray(x)

    def rows() -> Iterator[Any]:
        yield from array if array.ndim else [array]

    return rows


def text_file(path: str | PathLike[str]) -> Reader:
    """A reader of the lines of a UTF-8 text file, without the ends of the lines."""

    def lines() -> Iterator[str]:
        with open(path, encoding="utf-8") as file:
            for line in file:
                yield line.rstrip("\n")

    return lines


def recordio(paths: Any, buf_size: int = 100) -> Reader:
    """RecordIO files cannot be read here: raises NotSupportedError."""
    raise NotSupportedError(
        f"recordio files ({paths!r:.80}) cannot be read by fluidlite; convert them to .npy or text files "
        "once and read those with paddle.reader.creator.np_array or text_file"
    )
