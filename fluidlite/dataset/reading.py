"""Helpers of data sets: finding, downloading and unpacking files, samples of images and sentences."""

from __future__ import annotations

import os
import queue
import sys
import tarfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from io import BufferedIOBase
from pathlib import Path
from typing import IO, Any, cast
from zipfile import BadZipFile, ZipFile

import numpy as np

from ..base import flags, long_work
from ..base.errors import DownloadError, FormatError
from ..base.storage.files import atomic_writer

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


@contextmanager
def _reading(path: str) -> Iterator[None]:
    """Turn the errors of damaged archives into FormatError."""
    try:
        yield
    except (FileNotFoundError, FormatError):
        raise
    except damage(tarfile.TarError, BadZipFile) as error:
        raise damaged(path, str(error)) from error


class _Budget:
    """How many bytes may still come out of an archive."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._left = self._most = room(os.path.getsize(path))

    def spend(self, name: str, size: int) -> None:
        """Raise FormatError if a member of this size is too much."""
        self._left -= size
        if self._left < 0:
            raise damaged(self._path, f"it is packed and holds {size} bytes and more in {name}")

    def check(self, size: int) -> None:
        """Raise FormatError if `size` bytes at once are too much."""
        if not 0 <= size <= self._most:
            raise damaged(self._path, f"it is packed and has a part of {size} bytes")


class _Limited:
    """A binary file for `tarfile`, which reads names as long as the archive says."""

    def __init__(self, file: BinaryFile, budget: _Budget) -> None:
        self._file, self._budget = file, budget
        self.seek, self.tell = file.seek, file.tell

    def read(self, size: int) -> bytes:
        self._budget.check(size)
        return self._file.read(size)


@contextmanager
def _opened(path: str, budget: _Budget) -> Iterator[tarfile.TarFile]:
    """A tar file, packed or not."""
    with open(path, "rb") as file, unpacked(file) or nullcontext(file) as packed:
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
    raise damaged(path, f"it has no member {name}")


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
            raise damaged(path, f"it has no member {name}")
        return _zipped(file, name, _Budget(path))


def _zipped(file: ZipFile, name: str, budget: _Budget) -> bytes:
    budget.spend(name, file.getinfo(name).file_size)
    return file.read(name)


CONNECT_SECONDS = 5
"""How long to wait for a server to begin its answer; name resolution included."""

STALL_SECONDS = 20
"""How long a download may stand still."""

TRIES = 3
"""How often a file is downloaded when its checksum is wrong."""

_BLOCK = 1 << 16


class _WrongContents(Exception):
    """The downloaded file does not have the expected checksum."""


def md5(path: str) -> str:
    """The MD5 of a file's contents, in hexadecimal digits."""
    digest = _digest()
    with open(path, "rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _digest() -> Any:
    import hashlib  # slow to import

    return hashlib.md5(usedforsecurity=False)


def download(url: str, path: str, md5sum: str | None) -> None:
    """Download `url` (http, https or file) to `path`, which appears complete or not at all.

    Raises DownloadError if there is no connection, if it breaks, if the contents do not have the checksum
    `md5sum` (None: anything will do) after some tries, or if FLUIDLITE_OFFLINE is set.
    """
    if flags.switch("FLUIDLITE_OFFLINE"):
        raise DownloadError(f"{url} was not downloaded: FLUIDLITE_OFFLINE is set")
    for _ in range(TRIES):
        try:
            with atomic_writer(path) as file:
                found = _copy(url, os.path.basename(path), file)
                if md5sum not in (None, found):
                    raise _WrongContents
            return
        except _WrongContents:
            continue
        except OSError as error:
            raise DownloadError(f"{url} could not be downloaded: {error}") from error
    raise DownloadError(
        f"{url} could not be downloaded: its contents have the MD5 {found}, expected {md5sum} "
        f"(tried {TRIES} times)"
    )


def _copy(url: str, name: str, file: Any) -> str:
    """Copy what `url` holds to `file`; returns its MD5."""
    digest = _digest()
    with _open(url) as answer:
        expected = answer.headers.get("Content-Length")
        size = int(expected) if expected else None
        done = 0
        with long_work.bar(size, name, unit="B", unit_scale=True) as bar:
            while block := answer.read(_BLOCK):
                file.write(block)
                digest.update(block)
                done += len(block)
                if bar is not None:
                    bar.update(len(block))
    if size is not None and done != size:
        raise OSError(f"the connection broke after {done} of {size} bytes")
    return digest.hexdigest()


def _open(url: str) -> Any:
    """The open answer to a request for `url`.

    The request runs in a thread, abandoned after a timeout, because no timeout covers name resolution.
    """
    from urllib.error import HTTPError, URLError
    from urllib.request import Request, urlopen

    answers: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def ask() -> None:
        try:
            answers.put(urlopen(Request(url, headers={"User-Agent": "fluidlite"}), timeout=STALL_SECONDS))
        except HTTPError as error:
            error.close()
            answers.put(error)
        except URLError as error:
            answers.put(error.reason if isinstance(error.reason, OSError) else error)
        except Exception as error:
            answers.put(error)

    threading.Thread(target=ask, name="fluidlite-download", daemon=True).start()
    try:
        answer = answers.get(timeout=CONNECT_SECONDS)
    except queue.Empty:
        raise OSError(f"no answer within {CONNECT_SECONDS} seconds") from None
    if isinstance(answer, Exception):
        if isinstance(answer, OSError):
            raise answer
        raise OSError(str(answer)) from answer
    return answer


Pair = tuple[list[int], list[int], list[int]]
"""A sentence with both marks, its translation with the mark of the beginning, and with that of the end."""


def two_columns(data: bytes) -> Iterator[list[str]]:
    """Both sentences of each line that has two, with a tab between them."""
    for line in data.decode("utf8", "replace").split("\n"):
        columns = line.strip().split("\t")
        if len(columns) == 2:
            yield columns


def marked(source: list[int], target: list[int], begin: int, end: int) -> Pair:
    """The numbers of two sentences with marks around them."""
    return [begin, *source, end], [begin, *target], [*target, end]


_CHUNK = 256


def samples(
    images: np.ndarray, labels: Sequence[int], divisor: float, offset: float
) -> Iterator[tuple[np.ndarray, int]]:
    """Yield `(image / divisor + offset, label)`, float32, for images of shape [n, size] and type uint8.

    Images become floats a few hundred at a time, which is quick and leaves most of them at a byte a pixel;
    those that the caller has are views of such a chunk, which no one else changes.
    """
    scale, shift = np.float32(divisor), np.float32(offset)
    for start in range(0, len(images), _CHUNK):
        chunk = np.divide(images[start : start + _CHUNK], scale, dtype=np.float32)
        if offset:
            chunk += shift
        yield from zip(chunk, labels[start : start + _CHUNK], strict=True)
