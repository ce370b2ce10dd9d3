"""`urllib.request.URLopener`, by what fetches pages and files today."""

from __future__ import annotations

import shutil
import sys
import tempfile
import urllib.request
from typing import Any


class URLopener:
    """Opens URLs, and saves what they lead to.

    Args:
        proxies: scheme -> URL of a proxy; by default those of the environment.
    """

    version = "Python-urllib/{}.{}".format(*sys.version_info)
    """What it calls itself, for classes derived from it to change."""

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
        """Save what `url` leads to, in a temporary file by default; returns the name of the file and the headers of the
        response. `reporthook(blocks, bytes of a block, bytes of all)` is told how far it is; -1: nobody knows.
        """
        with self.open(url, data) as response:
            target = open(filename, "wb") if filename else tempfile.NamedTemporaryFile(delete=False)  # noqa: SIM115
            with target as file:
                if reporthook is None:
                    shutil.copyfileobj(response, file)
                    return file.name, response.headers
                size, blocks, whole = 1 << 13, 0, int(response.headers.get("Content-Length", -1))
                reporthook(blocks, size, whole)
                while block := response.read(size):
                    file.write(block)
                    blocks += 1
                    reporthook(blocks, size, whole)
                return file.name, response.headers

    def close(self) -> None:
        """Without effect."""


FancyURLopener = URLopener
