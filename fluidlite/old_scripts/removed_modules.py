"""Removed classes and functions of Python: `distutils.version`, `urllib.request.URLopener`, and those of `imp`."""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import sys
import tempfile
import urllib.error
import urllib.request
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

from ..base.storage.files import atomic_writer
from .finder import for_user
from .notes import installed


@functools.total_ordering
class LooseVersion:
    """A version of any form; numbers in it compare as numbers. `version` is the list of its parts."""

    def __init__(self, vstring: str | None = None) -> None:
        if vstring:
            self.parse(vstring)

    def parse(self, vstring: str) -> None:
        """Take the version `vstring`."""
        self.vstring = vstring
        parts = re.findall(r"\d+|[a-z]+|[^\d a-z.]+", vstring)
        self.version: list[int | str] = [int(part) if part.isdigit() else part for part in parts]

    def __str__(self) -> str:
        return self.vstring

    def __repr__(self) -> str:
        return f"{type(self).__name__} ('{self}')"

    def _key(self) -> list[int | str]:
        return self.version

    def _other(self, other: object) -> LooseVersion | None:
        return (
            type(self)(other)
            if isinstance(other, str)
            else other
            if isinstance(other, LooseVersion)
            else None
        )

    def __eq__(self, other: object) -> bool:
        found = self._other(other)
        return NotImplemented if found is None else self._key() == found._key()

    def __lt__(self, other: object) -> bool:
        found = self._other(other)
        return NotImplemented if found is None else self._key() < found._key()

    __hash__ = None  # type: ignore[assignment]


class StrictVersion(LooseVersion):
    """Two or three numbers and perhaps a or b with a number for versions before; ValueError for another form."""

    def parse(self, vstring: str) -> None:
        """Take the version `vstring`."""
        found = re.fullmatch(r"(\d+)\.(\d+)(?:\.(\d+))?(?:([ab])(\d+))?", vstring)
        if found is None:
            raise ValueError(f"expected a version such as 1.2 or 1.2.3b1, got {vstring!r}")
        self.vstring = vstring
        first, second, third, letter, number = found.groups()
        self.version = [int(first), int(second), int(third or 0), letter or "~", int(number or 0)]


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


def load_source(name: str, pathname: str, file: Any = None) -> ModuleType:
    """Load the file `pathname` as module `name`; a loaded module is executed anew."""
    spec = importlib.util.spec_from_file_location(name, pathname)
    if spec is None:
        raise ImportError(f"{pathname} is no Python source", name=name, path=pathname)
    return _load(spec)


def find_module(name: str, path: Any = None) -> tuple[None, str | None, ModuleSpec]:
    """The arguments of `load_module` for the module `name`; ImportError if there is none."""
    spec = PathFinder.find_spec(name, path) if path is not None else importlib.util.find_spec(name)
    if spec is None:
        raise ImportError(f"No module named {name!r}", name=name)
    return None, spec.origin, spec


def load_module(name: str, file: Any, filename: str | None, details: Any) -> ModuleType:
    """Load the result of `find_module` as module `name`; a loaded module is executed anew."""
    if not isinstance(details, ModuleSpec):
        raise TypeError(f"load_module takes what find_module returned, got {details!r}")
    spec = importlib.util.spec_from_file_location(name, details.origin) if details.name != name else details
    return _load(spec or details)


def load_by(loader: Any, fullname: str = "") -> ModuleType:
    """Load the module of a loader, or the one called `fullname`; a loaded module is executed anew."""
    spec = importlib.util.spec_from_loader(fullname or loader.name, loader)
    if spec is None:
        raise ImportError(f"{loader!r} has no module {fullname!r}", name=fullname)
    return _load(spec)


def _load(spec: ModuleSpec) -> ModuleType:
    if spec.origin is not None and not installed(spec.origin):
        spec.loader = for_user(spec.loader)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    if spec.loader is not None:
        spec.loader.exec_module(module)
    return module
