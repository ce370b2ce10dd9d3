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
def _about(what: str) -> Iterator[None]:
    """Say in an OSError of the block what was to be done, not only what the system refused."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, f"cannot {what}: {error.strerror}", error.filename) from None


def make_folder(path: str | os.PathLike[str]) -> None:
    """Make a folder and those on the way to it, if they are not there. OSError naming `path` if that cannot be."""
    with _about(f"make the folder {path} to write in"):
        Path(path).mkdir(parents=True, exist_ok=True)


@contextmanager
def atomic_writer(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A binary file that takes the place of `path` when the block ends well, and vanishes when it does not.

    Folders on the way are made. The bytes go to a file beside `path`, which then replaces it in one step.
    Raises OSError naming `path` if it cannot be written.
    """
    target = Path(os.path.realpath(path))
    make_folder(target.parent)
    if target.is_dir():
        raise IsADirectoryError(f"cannot write the file {target}: there is a folder of that name")
    draft = target.parent / f".fluidlite-{os.getpid()}-{next(_numbers)}.tmp"
    with _about(f"write the file {target}"):
        opened = draft.open("xb")
    try:
        with opened as file:
            yield file
        draft.replace(target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
