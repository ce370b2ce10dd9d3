"""Reading members of tar and zip files, into memory; what comes out is limited, see `files.room`."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from typing import IO, Any, cast
from zipfile import BadZipFile, ZipFile

from ...base.errors import FormatError
from . import files


@contextmanager
def _reading(path: str) -> Iterator[None]:
    """Turn the errors of damaged archives into FormatError."""
    try:
        yield
    except (FileNotFoundError, FormatError):
        raise
    except files.damage(tarfile.TarError, BadZipFile) as error:
        raise files.damaged(path, str(error)) from error


class _Budget:
    """How many bytes may still come out of an archive."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._left = self._most = files.room(os.path.getsize(path))

    def spend(self, name: str, size: int) -> None:
        """Raise FormatError if a member of this size is too much."""
        self._left -= size
        if self._left < 0:
            raise files.damaged(self._path, f"it is packed and holds {size} bytes and more in {name}")

    def check(self, size: int) -> None:
        """Raise FormatError if `size` bytes at once are too much."""
        if not 0 <= size <= self._most:
            raise files.damaged(self._path, f"it is packed and has a part of {size} bytes")


class _Limited:
    """A binary file for `tarfile`, which reads names as long as the archive says."""

    def __init__(self, file: files.BinaryFile, budget: _Budget) -> None:
        self._file, self._budget = file, budget
        self.seek, self.tell = file.seek, file.tell

    def read(self, size: int) -> bytes:
        self._budget.check(size)
        return self._file.read(size)


@contextmanager
def _opened(path: str, budget: _Budget) -> Iterator[tarfile.TarFile]:
    """A tar file, packed or not."""
    with open(path, "rb") as file, files.unpacked(file) or nullcontext(file) as packed:
        with tarfile.open(fileobj=cast("IO[bytes]", _Limited(packed, budget)), mode="r:") as tar:
            yield tar


def tar_members(path: str, wanted: Callable[[str], Any]) -> Iterator[tuple[str, bytes]]:
    """Name and contents of the files in the tar file `path`, packed or not, whose names are `wanted`; in its order.

    Raises FormatError if the archive is damaged.
    """
    with ExitStack() as opened:
        with _reading(path):
            budget = _Budget(path)
            tar = opened.enter_context(_opened(path, budget))
        members = iter(tar)
        while True:
            with _reading(path):
                member = next(members, None)
                if member is None:
                    return
                file = tar.extractfile(member) if wanted(member.name) else None
                if file is not None:
                    budget.spend(member.name, member.size)
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


def unpack(path: str, folder: str) -> None:
    """Unpack the tar file `path` into a folder, never outside it; raises FormatError if it is damaged."""
    with _reading(path):
        budget = _Budget(path)
        with _opened(path, budget) as tar:
            for member in tar:
                budget.spend(member.name, member.size)
                tar.extract(member, folder, filter="data")


def zip_members(path: str) -> dict[str, bytes]:
    """Contents by name of the files in the zip file `path`; raises FormatError if it is damaged."""
    with _reading(path), ZipFile(path) as file:
        budget = _Budget(path)
        return {name: _zipped(file, name, budget) for name in file.namelist() if not name.endswith("/")}


def zip_member(path: str, name: str) -> bytes:
    """The contents of the file `name` in the zip file `path`; raises FormatError if there is none."""
    with _reading(path), ZipFile(path) as file:
        if name not in file.namelist():
            raise files.damaged(path, f"it has no member {name}")
        return _zipped(file, name, _Budget(path))


def _zipped(file: ZipFile, name: str, budget: _Budget) -> bytes:
    budget.spend(name, file.getinfo(name).file_size)
    return file.read(name)
