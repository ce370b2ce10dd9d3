"""Remote files and folders, by URLs of fsspec (`s3://bucket/models`, `hdfs://...`, `memory://...`).

Readers and writers work on local files, which are downloaded before, or uploaded afterwards.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, BinaryIO, ParamSpec, TypeVar

from ..errors import NotSupportedError

P = ParamSpec("P")
R = TypeVar("R")


def is_url(path: Any) -> bool:
    """Whether a path is a URL and no local path."""
    return isinstance(path, str) and "://" in path


def file_system(url: str) -> tuple[Any, str]:
    """The file system of a URL, and the path in it. NotSupportedError without fsspec, ValueError for another kind."""
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise NotSupportedError(
            f"{url} is a URL, which needs fsspec: pip install 'fluidlite[urls]'"
        ) from None
    system, path = url_to_fs(url)
    return system, path


@contextmanager
def fetched(url: str) -> Iterator[BinaryIO]:
    """A local copy of the file at a URL, open for reading. FileNotFoundError if it does not exist."""
    import shutil  # slow to import
    import tempfile

    system, path = file_system(url)
    with tempfile.TemporaryFile(buffering=0) as here:
        with system.open(path, "rb") as source:
            shutil.copyfileobj(source, here)
        here.seek(0)
        yield here  # type: ignore[misc]


@contextmanager
def _folder(url: str, prefix: str, writes: bool) -> Iterator[Path]:
    """A folder of this machine with those files of the folder at a URL that begin with `prefix`, or for them.

    ValueError for names there that would lead out of it.
    """
    import tempfile  # slow to import

    system, root = file_system(url)
    root = root.rstrip("/")
    with tempfile.TemporaryDirectory(prefix="fluidlite-") as text:
        here = Path(text)
        if not writes:
            for path in system.find(root):
                name = path[len(root) :].lstrip("/")
                if ".." in name.split("/"):
                    raise ValueError(f"{url} holds {name!r}, whose name leads out of the folder")
                if name.startswith(prefix):
                    (here / name).parent.mkdir(parents=True, exist_ok=True)
                    system.get_file(path, str(here / name))
        yield here
        if writes:
            for file in sorted(path for path in here.rglob("*") if path.is_file()):
                target = f"{root}/{file.relative_to(here).as_posix()}"
                system.makedirs(target.rpartition("/")[0], exist_ok=True)
                system.put_file(str(file), target)


def also_by_url(name: str, position: int, writes: bool = False, files: bool = False) -> Callable[..., Any]:
    """Decorate a function so that the path of a folder, argument `name` at `position`, may be a URL.

    `writes`: whether it writes there. `files`: the path is that of files without their suffixes.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            given = kwargs[name] if name in kwargs else args[position] if len(args) > position else None
            if not is_url(given):
                return function(*args, **kwargs)
            url, prefix = (str(given), "") if not files else str(given).rsplit("/", 1)
            with _folder(url, prefix, writes) as here:
                path = os.fspath(here / prefix)
                if name in kwargs:
                    kwargs[name] = path
                else:
                    args = (*args[:position], path, *args[position + 1 :])  # type: ignore[assignment]
                return function(*args, **kwargs)

        return call

    return decorate
