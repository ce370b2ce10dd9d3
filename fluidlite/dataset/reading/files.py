"""Finding data files that the user has, and reading them whatever packed them."""

from __future__ import annotations

import os
from pathlib import Path

from ...base.errors import FormatError

DATA_VARIABLE = "FLUIDLITE_DATA"
"""The environment variable that names the user's directory of data sets."""

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

    Raises FormatError if the packing is damaged, OSError if the file cannot be read.
    """
    data = Path(path).read_bytes()
    # Modules that most programs never need are imported where they are needed: `import paddle` stays quick.
    import zlib

    try:
        if data[:2] == b"\x1f\x8b":
            import gzip

            return gzip.decompress(data)
        if data[:6] == b"\xfd7zXZ\x00":
            import lzma

            return lzma.decompress(data)
        if data[:3] == b"BZh":
            import bz2

            return bz2.decompress(data)
    except (EOFError, OSError, zlib.error, ValueError, RuntimeError) as error:
        raise damaged(path, str(error)) from error
    return data


def damaged(path: str, what: str) -> FormatError:
    """The error for a data file with the wrong contents."""
    return FormatError(f"{path} is damaged or not the expected data file: {what}; remove or replace it")
