"""Atomic writing of files: a reader sees the old file or the complete new one."""

from __future__ import annotations

import errno
import fcntl
import io
import os
import re
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, BinaryIO, ParamSpec, TypeVar

from ..errors import NotSupportedError

AnyPath = str | os.PathLike[str]

_NAME = re.compile(r"\.fluidlite-([0-9a-f]+)-[0-9]+\.tmp")
_SWEEP_SECONDS = 60.0
_swept: dict[Path, float] = {}
"""The time at which this process last swept a folder of abandoned drafts."""
_current: ContextVar[_Files | None] = ContextVar("_current", default=None)

_NOT_OURS = frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY})
"""Why a folder refuses a new file, or another file in the place of one, that may itself be written to: the folder is
read-only, the file is a mount point, or another user's in a folder such as `/tmp`.
"""
_NO_SYNC = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP})


@contextmanager
def _about(what: str, path: AnyPath) -> Iterator[None]:
    """Add the action and the file to the message of an OSError in the block."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, f"cannot {what}: {error.strerror or error}", os.fspath(path)) from None


def make_folder(path: AnyPath) -> None:
    """Make a folder with its parents, if missing. OSError naming `path` on failure."""
    with _about(f"make the folder {path} to write in", path):
        Path(path).mkdir(parents=True, exist_ok=True)


def is_draft(name: str) -> bool:
    """Whether a file of this name is one that is being written, or was when its process ended."""
    return _NAME.fullmatch(name) is not None


@contextmanager
def atomic_writer(path: AnyPath, folders: bool = True) -> Iterator[BinaryIO]:
    """A binary file that replaces `path` when the block ends well, and is removed when it fails.

    Missing folders are made, unless `folders` is False. The bytes go to a draft in the same folder, which replaces the
    file atomically when they are on the disk. A link is followed, and an existing file keeps its mode, owner and
    attributes (not its hard links). Devices, pipes and sockets are written to directly, and so is a file in a folder
    where no draft can be made, at the end.

    A process that is killed leaves its drafts; they do no harm, as their names are random, readers of folders skip them
    (`is_draft`), and the next process that writes in the folder removes them.

    Raises OSError, naming the file, if it cannot be written.
    """
    with atomic_files() as files, files.create(path, folders) as file:
        yield file


@contextmanager
def atomic_files() -> Iterator[_Files]:
    """Defer the files of `atomic_writer` in the block: they replace their targets when it ends; if it fails, none does.

    Of one folder's files the first is placed last. A process that is killed between the first replacement and the last
    leaves old and new files. A nested block joins the outer one.
    """
    outer = _current.get()
    if outer is not None:
        yield outer
        return
    files = _Files()
    token = _current.set(files)
    try:
        yield files
        files.place()
    finally:
        _current.reset(token)
        files.close()


def write_file(path: AnyPath, content: bytes | str, folders: bool = True) -> None:
    """Make `content` the contents of a file (texts in UTF-8), as `atomic_writer` does."""
    with atomic_writer(path, folders) as file:
        file.write(content.encode() if isinstance(content, str) else content)


class _Raw(io.FileIO):
    """A file open for writing, with errors that name its target."""

    def __init__(self, file: AnyPath | int, mode: str, target: AnyPath) -> None:
        self._about = f"write the file {os.fspath(target)}", target
        super().__init__(file if isinstance(file, int) else os.fspath(file), mode)

    def write(self, data: Any) -> int:
        with _about(*self._about):
            return super().write(data)

    def close(self) -> None:
        with _about(*self._about):
            super().close()

    def sync(self) -> None:
        """Flush the bytes to the disk (fsync), for a regular file."""
        with _about(*self._about):
            _sync(self.fileno())


@dataclass
class _Draft:
    """The new content of `target`: a file in the same folder, or one without a name."""

    target: Path
    path: Path | None = None
    descriptor: int = -1
    whole: bool = False


class _Files:
    """The drafts of one `atomic_files`.

    Those in one folder are `.fluidlite-TOKEN-N.tmp`. The first is locked until all have replaced
    their targets, it last, so that other processes can tell whether the writer is alive (`_sweep`).
    """

    def __init__(self) -> None:
        self._token = os.urandom(8).hex()
        self._drafts: dict[Path, list[_Draft]] = {}
        self._descriptors: list[int] = []
        self._folders: list[Path] = []

    @contextmanager
    def create(self, path: AnyPath, folders: bool) -> Iterator[BinaryIO]:
        """A binary file that is to take the place of `path`; see `atomic_writer`."""
        draft = _Draft(Path(os.path.realpath(path)))
        with _about(f"write the file {draft.target}", draft.target):
            found = os.stat(path) if os.path.exists(path) else None
            if found is not None and stat.S_ISDIR(found.st_mode):
                raise IsADirectoryError(errno.EISDIR, "there is a folder of that name")
        if found is None or stat.S_ISREG(found.st_mode):
            if folders:
                self._make_folder(draft.target.parent)
            raw = self._begin(draft, found)
        else:
            with _about(f"write the file {draft.target}", draft.target):
                raw = _Raw(path, "wb", draft.target)
        with io.BufferedWriter(raw) as file:
            yield file  # type: ignore[misc]
            file.flush()
            raw.sync()
        for other in self._drafts.get(draft.target.parent, ()):
            other.whole = other is draft or (other.whole and other.target != draft.target)

    def _make_folder(self, folder: Path) -> None:
        if not folder.is_dir():
            self._folders += [each for each in (folder, *folder.parents) if not each.exists()]
            make_folder(folder)

    def _begin(self, draft: _Draft, found: os.stat_result | None) -> _Raw:
        target, folder = draft.target, draft.target.parent
        _sweep(folder)
        drafts = self._drafts.setdefault(folder, [])
        path = folder / f".fluidlite-{self._token}-{len(drafts)}.tmp"
        with _about(f"write the file {target}", target):
            if found is not None and not os.access(target, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            try:
                raw = _Raw(path, "xb", target)
            except OSError as error:
                if found is None or error.errno not in _NOT_OURS:
                    raise
                raw = self._elsewhere(draft)
                drafts.append(draft)
                return raw
        if not drafts and not self._lock(path, raw.fileno()):
            raw.close()
            return self._begin(draft, found)
        draft.path = path
        drafts.append(draft)
        if found is not None:
            _keep(raw.fileno(), target, found)
        return raw

    def _lock(self, path: Path, descriptor: int) -> bool:
        """Lock a draft; False if another process has swept it before that."""
        with suppress(OSError):  # some file systems have no locks; nothing is swept there
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        try:
            same = os.path.samestat(os.fstat(descriptor), os.stat(path))
        except FileNotFoundError:
            return False
        self._descriptors.append(os.dup(descriptor))
        return same

    def _elsewhere(self, draft: _Draft) -> _Raw:
        """The file of a draft that cannot be created in its target's folder."""
        import tempfile  # slow to import

        descriptor, name = tempfile.mkstemp()
        os.unlink(name)
        draft.descriptor = os.dup(descriptor)
        self._descriptors.append(draft.descriptor)
        return _Raw(descriptor, "wb", draft.target)

    def place(self) -> None:
        """Replace all targets by their drafts."""
        self._folders.clear()
        for folder, drafts in self._drafts.items():
            for draft in reversed(drafts):
                if draft.whole:
                    _replace(draft)
            with suppress(OSError):  # of a folder that may not be read
                descriptor = os.open(folder, os.O_RDONLY)
                self._descriptors.append(descriptor)
                _sync(descriptor)

    def close(self) -> None:
        """Remove the drafts that have not replaced their targets, and the folders made for them."""
        with ExitStack() as rest:
            rest.callback(self._remove_folders)
            for descriptor in self._descriptors:
                rest.callback(os.close, descriptor)
            for drafts in self._drafts.values():
                for draft in drafts:
                    if draft.path is not None:
                        rest.callback(draft.path.unlink, missing_ok=True)

    def _remove_folders(self) -> None:
        for folder in sorted(self._folders, key=lambda folder: -len(folder.parts)):
            with suppress(OSError):  # another process has written there
                folder.rmdir()


def _replace(draft: _Draft) -> None:
    """Replace a target by its draft, or, if it cannot be replaced, its contents."""
    if draft.path is not None:
        with _about(f"write the file {draft.target}", draft.target):
            try:
                draft.path.replace(draft.target)
                return
            except OSError as error:
                if error.errno not in _NOT_OURS or not draft.target.is_file():
                    raise
        source = draft.path.open("rb")
    else:
        os.lseek(draft.descriptor, 0, os.SEEK_SET)
        source = open(draft.descriptor, "rb", closefd=False)  # noqa: SIM115
    with source:
        _write_in_place(source, draft.target)


def _write_in_place(source: BinaryIO, target: Path) -> None:
    with _about(f"write the file {target}", target):
        raw = _Raw(target, "wb", target)
    with io.BufferedWriter(raw) as file:
        shutil.copyfileobj(source, file)
        file.flush()
        raw.sync()


def _sync(descriptor: int) -> None:
    """Flush a file or folder to the disk (fsync), where that is possible."""
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise


def _keep(descriptor: int, target: Path, found: os.stat_result) -> None:
    """Copy the owner, mode and attributes (access lists included) of the target to its draft."""
    if (found.st_uid, found.st_gid) != (os.geteuid(), os.fstat(descriptor).st_gid):
        for owner in (found.st_uid, -1):
            with suppress(OSError):
                os.fchown(descriptor, owner, found.st_gid)
                break
    with suppress(OSError):
        os.fchmod(descriptor, stat.S_IMODE(found.st_mode))
    with suppress(OSError, AttributeError):  # not every system has them
        for name in os.listxattr(target):
            with suppress(OSError):
                os.setxattr(descriptor, name, os.getxattr(target, name))


def _sweep(folder: Path) -> None:
    """Remove from a folder the drafts of processes that are gone, if this process has not looked there lately."""
    now = time.monotonic()
    if now - _swept.get(folder, -_SWEEP_SECONDS) < _SWEEP_SECONDS:
        return
    _swept[folder] = now
    left: dict[str, list[Path]] = {}
    with suppress(OSError), os.scandir(folder) as entries:  # of a folder that may not be read
        for entry in entries:
            if named := _NAME.fullmatch(entry.name):
                left.setdefault(named[1], []).append(Path(entry.path))
    for token, drafts in left.items():
        with suppress(OSError), ExitStack() as held:  # locked, or not ours
            with suppress(FileNotFoundError):
                first = os.open(
                    folder / f".fluidlite-{token}-0.tmp", os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK
                )
                held.callback(os.close, first)
                fcntl.flock(first, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for draft in drafts:
                draft.unlink(missing_ok=True)


# Remote files and folders, by URLs of fsspec (`s3://bucket/models`, `hdfs://...`, `memory://...`).
#
# Readers and writers work on local files, which are downloaded before, or uploaded afterwards.

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
