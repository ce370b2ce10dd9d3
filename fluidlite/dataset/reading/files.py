"""Finding the user's data files, and reading them in any compression."""

from __future__ import annotations

import os
import sys
from io import BufferedIOBase
from pathlib import Path
from typing import IO

from ...base.errors import FormatError

DATA_VARIABLE = "FLUIDLITE_DATA"
"""The environment variable that names the user's directory of data sets."""

BinaryFile = IO[bytes] | BufferedIOBase

AT_LEAST = 32 << 20
"""The least limit on the unpacked size of a file, for small packed files."""

_PACKED = (".gz", ".xz", ".bz2")


def find(module_name: str, filename: str) -> str | None:
    """The file `$FLUIDLITE_DATA/MODULE_NAME/FILENAME`, packed or not; None if there is none.

    For `train-images-idx3-ubyte.gz`, `train-images-idx3-ubyte` and the same with .xz or .bz2 will do.
    """
    home = os.environ.get(DATA_VARIABLE)
    if not home:
        return None
    stem, extension = os.path.splitext(filename)
    bare = stem if extension in _PACKED else filename
    for name in dict.fromkeys((filename, bare, *(bare + packing for packing in _PACKED))):
        path = Path(home, module_name, name)
        if path.is_file():
            return str(path)
    return None


def read(path: str) -> bytes:
    """The contents of the file `path`, unpacked if its first bytes say gzip, xz or bzip2.

    Raises FormatError if the packing is damaged, or holds more than `room`, OSError if the file cannot be read.
    """
    with open(path, "rb") as file:
        packed = unpacked(file)
        return file.read() if packed is None else read_packed(packed, path, room(os.path.getsize(path)))


def read_packed(file: BinaryFile, what: str, most: int) -> bytes:
    """The rest of a packed file. Raises FormatError, naming `what`, for more than `most` bytes or damage."""
    try:
        data = file.read(most + 1)
    except damage() as error:
        raise damaged(what, str(error)) from error
    if len(data) > most:
        raise damaged(what, f"it is packed and holds more than {most} bytes")
    return data


def room(size: int) -> int:
    """The limit on the unpacked size of `size` packed bytes: beyond any data set's need, and less than the memory."""
    return AT_LEAST + 20 * size


def unpacked(file: IO[bytes]) -> BinaryFile | None:
    """A reader of the contents of a packed file; None for one that is not packed."""
    begin = file.read(6)
    file.seek(0)
    # Modules that most programs never need are imported where they are needed: `import paddle` stays quick.
    if begin[:2] == b"\x1f\x8b":
        import gzip

        return gzip.GzipFile(fileobj=file)
    if begin == b"\xfd7zXZ\x00":
        import lzma

        return lzma.LZMAFile(file)
    if begin[:3] == b"BZh":
        import bz2

        return bz2.BZ2File(file)
    return None


def damage(*errors: type[Exception]) -> tuple[type[Exception], ...]:
    """The exceptions that reading damaged packed files may raise, and `errors`."""
    import zlib

    module = sys.modules.get("lzma")
    found: tuple[type[Exception], ...] = () if module is None else (module.LZMAError,)
    return (*found, *errors, zlib.error, EOFError, OSError, RuntimeError, ValueError)


def damaged(path: str, what: str) -> FormatError:
    """The error for a data file with the wrong contents."""
    return FormatError(f"{path} is damaged or not the expected data file: {what}; remove or replace it")
