"""Writing files so that a reader sees the old file or the whole new one, never a half."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

_numbers = itertools.count()


@contextmanager
def atomic_writer(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A binary file that takes the place of `path` when the block ends well, and vanishes when it does not.

    Folders on the way are made. The bytes go to a file beside `path`, which then replaces it in one step.
    Raises OSError as `open` does.
    """
    target = Path(os.path.realpath(path))
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.is_dir():
        raise IsADirectoryError(f"cannot write the file {target}: there is a folder of that name")
    draft = target.parent / f".fluidlite-{os.getpid()}-{next(_numbers)}.tmp"
    try:
        with draft.open("xb") as file:
            yield file
        draft.replace(target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
