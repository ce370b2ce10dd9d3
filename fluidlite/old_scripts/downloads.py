"""`urllib.request.URLopener` on top of `urllib.request.urlopen`."""

from __future__ import annotations

import os
import sys
import tempfile
import urllib.error
import urllib.request
from typing import Any

from ..base.storage.files import atomic_writer


class URLopener:
    """Opens URLs and downloads them.

    Args:
        proxies: scheme -> URL of a proxy; by default those of the environment.
    """

    version = "Python-urllib/{}.{}".format(*sys.version_info)
    """The value of the header User-Agent; subclasses override it."""

    def __init__(self, proxies: Any = None, **x509: Any) -> None:
        self.addheaders = [("User-Agent", self.version), ("Accept", "*/*")]
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler(proxies))

    def addheader(self, *args: str) -> None:
        """Send a header, given as its name and its value, with all requests."""
        self.addheaders.append((args[0], args[1]))

    def open(self, fullurl: str, data: bytes | None = None) -> Any:
        """The response to a request, whose content may be read; OSError if there is none."""
        return self._opener.open(urllib.request.Request(fullurl, data, dict(self.addheaders)))

    def retrieve(
        self, url: str, filename: str | None = None, reporthook: Any = None, data: bytes | None = None
    ) -> tuple[str, Any]:
        """Download `url`, to a temporary file by default; returns the name of the file and the headers of the response.

        `reporthook(blocks, bytes of a block, bytes of all)` reports progress; -1 for an unknown size.
        """
        with self.open(url, data) as response:
            if not filename:
                handle, filename = tempfile.mkstemp()
                os.close(handle)
            size, blocks, done = 1 << 13, 0, 0
            whole = int(response.headers.get("Content-Length", -1))
            with atomic_writer(filename, folders=False) as file:
                if reporthook is not None:
                    reporthook(blocks, size, whole)
                while block := response.read(size):
                    file.write(block)
                    blocks, done = blocks + 1, done + len(block)
                    if reporthook is not None:
                        reporthook(blocks, size, whole)
                if done < whole:
                    message = f"retrieval incomplete: got only {done} out of {whole} bytes"
                    raise urllib.error.ContentTooShortError(message, (filename, response.headers))
            return filename, response.headers

    def close(self) -> None:
        """Without effect."""


FancyURLopener = URLopener
