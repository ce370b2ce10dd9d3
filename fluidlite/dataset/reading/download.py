"""Downloads of data files: checked by MD5, written atomically, and quick to give up without a network."""

from __future__ import annotations

import os
import queue
import threading
from typing import Any

from ...base import flags
from ...base.errors import DownloadError
from ...base.reports import progress
from ...base.storage.files import atomic_writer

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
        with progress.bar(size, name, unit="B", unit_scale=True) as bar:
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
