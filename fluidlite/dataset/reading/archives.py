"""Reading members of tar and zip files: into memory, never to the file system."""

from __future__ import annotations

import tarfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from zipfile import BadZipFile, ZipFile

from . import files


@contextmanager
def _reading(path: str) -> Iterator[None]:
    """Turn the errors of damaged archives into FormatError."""
    try:
        yield
    except FileNotFoundError:
        raise
    except (tarfile.TarError, BadZipFile, EOFError, OSError, zlib.error, NotImplementedError) as error:
        raise files.damaged(path, str(error)) from error


def tar_members(path: str, wanted: Callable[[str], Any]) -> Iterator[tuple[str, bytes]]:
    """Name and contents of the files in the tar file `path`, packed or not, whose names are `wanted`; in its order.

    Raises FormatError if the archive is damaged.
    """
    with _reading(path):
        tar = tarfile.open(path, "r:*")
    with tar:
        members = iter(tar)
        while True:
            with _reading(path):
                member = next(members, None)
                if member is None:
                    return
                file = tar.extractfile(member) if wanted(member.name) else None
                data = None if file is None else file.read()
            if data is not None:
                yield member.name, data


def tar_member(path: str, name: str) -> bytes:
    """The contents of the file in the tar file `path` whose name is `name`, or ends with it.

    Raises FormatError if there is none.
    """
    for _, data in tar_members(path, lambda found: f"/{found}".endswith(f"/{name}")):
        return data
    raise files.damaged(path, f"it has no member {name}")


def zip_members(path: str) -> dict[str, bytes]:
    """Contents by name of the files in the zip file `path`; raises FormatError if it is damaged."""
    with _reading(path), ZipFile(path) as file:
        return {name: file.read(name) for name in file.namelist() if not name.endswith("/")}


def zip_member(path: str, name: str) -> bytes:
    """The contents of the file `name` in the zip file `path`; raises FormatError if there is none."""
    with _reading(path), ZipFile(path) as file:
        if name not in file.namelist():
            raise files.damaged(path, f"it has no member {name}")
        return file.read(name)
