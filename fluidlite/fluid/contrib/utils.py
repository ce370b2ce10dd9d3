"""Files on HDFS, readers of several trainers, and programs with distributed lookup tables (`fluid.contrib.utils`)."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from itertools import islice
from pathlib import Path
from typing import Any

from ...base.storage.files import atomic_writer, file_system, is_draft, is_url
from ...executor import Executor
from ...framework import Program, Variable
from ..io.inference import with_ends
from ..io.saving import load_parts

__path__: list[str] = []  # the modules below are views: base/names/views.py

__all__ = ["HDFSClient", "get_inference_model", "multi_download", "multi_upload"]

_logger = logging.getLogger(__name__)


class HDFSClient:
    """Runs `hadoop fs` (`fluid.contrib.utils.HDFSClient`).

    Args:
        hadoop_home: the folder with `bin/hadoop`. If there is none, paths are URLs, or paths in the file system at the
            URL `fs.default.name`, of any kind that fsspec knows.
        configs: options of the command, such as `fs.default.name` and `hadoop.job.ugi`.

    `pre_commands`: the beginning of each command line.
    """

    def __init__(self, hadoop_home: str, configs: Mapping[str, str] | None) -> None:
        self.pre_commands = [os.path.join(hadoop_home, "bin", "hadoop"), "fs"]
        self.pre_commands += [f"-D{name}={value}" for name, value in (configs or {}).items()]
        self._root = (configs or {}).get("fs.default.name", "").rstrip("/")
        self._without_hadoop = not os.path.exists(self.pre_commands[0])

    def _run(self, *command: str, retry_times: int = 1) -> tuple[bool, str]:
        """Run a command, at most `retry_times` times; returns (success, output)."""
        if self._without_hadoop and (is_url(self._root) or any(map(is_url, command))):
            return by_url(self._root, *command)
        for _ in range(max(retry_times, 1)):
            done = subprocess.run(
                [*self.pre_commands, *command], capture_output=True, text=True, errors="replace", check=False
            )
            if not done.returncode:
                return True, done.stdout
        _logger.info("hadoop fs %s ended with status %d: %s", " ".join(command), done.returncode, done.stderr)
        return False, done.stdout

    def is_exist(self, hdfs_path: str) -> bool:
        """True if the path exists."""
        return self._run("-test", "-e", hdfs_path)[0]

    def is_dir(self, hdfs_path: str) -> bool:
        """True if the path is a folder."""
        return self.is_exist(hdfs_path) and self._run("-test", "-d", hdfs_path)[0]

    def delete(self, hdfs_path: str) -> bool:
        """Delete a file or folder; returns True if it does not exist afterwards."""
        if not self.is_exist(hdfs_path):
            return True
        return self._run("-rmr" if self.is_dir(hdfs_path) else "-rm", hdfs_path)[0]

    def rename(self, hdfs_src_path: str, hdfs_dst_path: str, overwrite: bool = False) -> bool:
        """Move a path; returns True on success. `overwrite` is accepted and without effect."""
        return self._run("-mv", hdfs_src_path, hdfs_dst_path)[0]

    @staticmethod
    def make_local_dirs(local_path: str) -> None:
        """Make a local folder and its parents."""
        os.makedirs(local_path, exist_ok=True)

    def makedirs(self, hdfs_path: str) -> bool:
        """Make a folder; returns True if it exists afterwards."""
        return self.is_exist(hdfs_path) or self._run("-mkdir", hdfs_path)[0]

    def ls(self, hdfs_path: str) -> list[str]:
        """The paths in a folder; [] if it does not exist."""
        if not self.is_exist(hdfs_path):
            return []
        return [fields[7] for fields in self._listed("-ls", hdfs_path)]

    def lsr(self, hdfs_path: str, only_file: bool = True, sort: bool = True) -> list[str]:
        """The paths in a folder and its subfolders; [] if it does not exist.

        `only_file`: no folders. `sort`: the oldest first.
        """
        if not self.is_exist(hdfs_path):
            return []
        rows = [
            fields for fields in self._listed("-lsr", hdfs_path) if not (only_file and fields[0][0] == "d")
        ]
        if sort:
            rows.sort(key=lambda fields: fields[5:7])
        return [fields[7] for fields in rows]

    def _listed(self, *command: str) -> list[list[str]]:
        """Permissions, replicas, owner, group, size, day, time and path of each item listed."""
        fields = (line.split(None, 7) for line in self._run(*command)[1].splitlines())
        return [each for each in fields if len(each) == 8]

    def upload(self, hdfs_path: str, local_path: str, overwrite: bool = False, retry_times: int = 5) -> bool:
        """Upload a local file to the folder `hdfs_path`, which is made if needed; returns True on success.

        It fails if `local_path` is a folder, or if the file exists and `overwrite` is False. Raises AssertionError if
        `local_path` does not exist.
        """
        assert os.path.exists(local_path), f"there is no file {local_path!r} to upload"
        if os.path.isdir(local_path):
            _logger.warning("%s is a folder: upload its files, or use multi_upload", local_path)
            return False
        target = f"{hdfs_path}/{os.path.basename(local_path)}"
        if self.is_exist(target):
            if not overwrite:
                _logger.error("%s exists, and is not to be overwritten", target)
                return False
            self.delete(target)
        self.makedirs(hdfs_path)
        return self._run("-put", local_path, hdfs_path, retry_times=retry_times)[0]

    def download(self, hdfs_path: str, local_path: str, overwrite: bool = False, unzip: bool = False) -> bool:
        """Download a file to `local_path`; returns True on success. `overwrite` removes an existing local file first.

        `unzip` is accepted.
        """
        if not self.is_exist(hdfs_path):
            _logger.error("HDFS path %s does not exist", hdfs_path)
            return False
        if os.path.isfile(local_path) and overwrite:
            os.remove(local_path)
        return self._run("-get", hdfs_path, local_path)[0]


def by_url(root: str, command: str, *words: str) -> tuple[bool, str]:
    """Run a command of `hadoop fs` in the file system of a URL; returns (success, output).

    `root`: the URL that other paths are relative to.
    """

    def placed(path: str) -> tuple[Any, str]:
        system, inside = file_system(path if is_url(path) else f"{root}/{path.lstrip('/')}")
        return system, inside.rstrip("/")

    if command == "-put":
        system, folder = placed(words[1])
        system.put_file(words[0], f"{folder}/{os.path.basename(words[0])}")
        return True, ""
    system, path = placed(words[-1] if command == "-test" else words[0])
    if command == "-test":
        return bool(system.isdir(path) if words[0] == "-d" else system.exists(path)), ""
    if command in ("-rm", "-rmr"):
        system.rm(path, recursive=command == "-rmr")
    elif command == "-mv":
        system.mv(path, placed(words[1])[1], recursive=system.isdir(path))
    elif command == "-mkdir":
        system.makedirs(path, exist_ok=True)
    elif command == "-cat":
        return True, system.cat_file(path).decode(errors="replace")
    elif command == "-get":
        local = os.path.join(words[1], os.path.basename(path)) if os.path.isdir(words[1]) else words[1]
        with system.open(path, "rb") as source, atomic_writer(local) as file:
            shutil.copyfileobj(source, file)
    else:
        entries = system.find(
            path, withdirs=command == "-lsr", maxdepth=None if command == "-lsr" else 1, detail=True
        )
        return True, "".join(
            _listing(each, f"{words[0].rstrip('/')}{name[len(path) :]}") for name, each in entries.items()
        )
    return True, ""


def _listing(entry: Mapping[str, Any], path: str) -> str:
    """A line as `hadoop fs -ls` prints it."""
    when = entry.get("mtime") or entry.get("modified") or entry.get("created") or 0.0
    if not hasattr(when, "strftime"):
        when = datetime.fromtimestamp(float(when), timezone.utc)
    kind = "d" if entry["type"] == "directory" else "-"
    return f"{kind}rwxr-xr-x - - - {entry.get('size') or 0} {when:%Y-%m-%d %H:%M:%S.%f} {path}\n"


def getfilelist(path: str) -> list[str]:
    """The files in a local folder and its subfolders."""
    return [
        os.path.join(folder, name)
        for folder, _, names in os.walk(path)
        for name in names
        if not is_draft(name)
    ]


def multi_download(
    client: HDFSClient,
    hdfs_path: str,
    local_path: str,
    trainer_id: int,
    trainers: int,
    multi_processes: int = 5,
) -> list[str]:
    """Download every `trainers`-th file below `hdfs_path`, from index `trainer_id` on.

    Follows `fluid.contrib.utils.multi_download`.

    `multi_processes`: the number of downloads in parallel. Subfolders are kept. Returns the local files. Raises OSError
    if a download fails.
    """
    files = client.lsr(hdfs_path, sort=False)[trainer_id::trainers]
    local = [os.path.join(local_path, os.path.relpath(name, hdfs_path)) for name in files]

    def get(number: int) -> None:
        client.make_local_dirs(os.path.dirname(local[number]))
        if not client.download(files[number], local[number]):
            raise OSError(f"{files[number]} could not be fetched to {local[number]}")

    client.make_local_dirs(local_path)
    from concurrent.futures import ThreadPoolExecutor  # slow to import

    with ThreadPoolExecutor(multi_processes) as pool:
        list(pool.map(get, range(len(files))))
    return local


def multi_upload(
    client: HDFSClient,
    hdfs_path: str,
    local_path: str,
    multi_processes: int = 5,
    overwrite: bool = False,
    sync: bool = True,
) -> None:
    """Upload all files of a local folder and its subfolders (`fluid.contrib.utils.multi_upload`).

    `multi_processes`: the number of uploads in parallel; `sync` is accepted: all are complete on return. Raises OSError
    if an upload fails.
    """

    def put(name: str) -> None:
        below = os.path.relpath(os.path.dirname(name), local_path)
        folder = hdfs_path if below == "." else f"{hdfs_path}/{below}"
        if not client.upload(folder, name, overwrite):
            raise OSError(f"{name} could not be put into {folder}")

    from concurrent.futures import ThreadPoolExecutor  # slow to import

    with ThreadPoolExecutor(multi_processes) as pool:
        list(pool.map(put, getfilelist(local_path)))


lookup_table_dir = "__lookup_table__"


def get_inference_model(
    main_program: Program, feeded_var_names: Sequence[str] | str, target_vars: Sequence[Variable] | Variable
) -> Program:
    """The part of a program that computes `target_vars` from the variables `feeded_var_names`, in test mode, with
    `feed` and `fetch` operators at its ends (`fluid.contrib.utils.lookup_table_utils.get_inference_model`).

    `main_program` is not changed. Raises ValueError for names and targets that are invalid, unknown to the program, or
    not needed.
    """
    feeds = [feeded_var_names] if isinstance(feeded_var_names, str) else list(feeded_var_names)
    if not feeds or not all(isinstance(name, str) for name in feeds):
        raise ValueError(f"feed_var_names should be a list of str, got {feeds!r}")
    targets = [target_vars] if isinstance(target_vars, Variable) else list(target_vars)
    if not targets or not all(isinstance(var, Variable) for var in targets):
        raise ValueError("target_vars should be a list of Variable, with at least one in it")
    for name in [*feeds, *(var.name for var in targets)]:
        main_program.global_block().var(name)
    outputs = [var.name for var in targets]
    return with_ends(main_program, feeds, outputs, outputs)


def load_persistables_for_increment(
    dirname: str | os.PathLike[str],
    executor: Executor,
    program: Program,
    lookup_table_var: str,
    lookup_table_var_path: str | os.PathLike[str],
) -> None:
    """Load the variables of a parameter server's program, to resume training: its shards of saved ones, and its table.

    Follows `fluid.contrib.utils.lookup_table_utils.load_persistables_for_increment`.

    Args:
        dirname: a folder with the whole variables, each in a file of its name.
        executor: not needed; the variables go into the global scope.
        program: a result of `DistributeTranspiler.get_pserver_program`.
        lookup_table_var: the table's variable, or this server's shard of it.
        lookup_table_var_path: the file with its value.

    Raises:
        ValueError: there is no such folder or file, or `program` is no server's program.
    """
    if not os.path.isdir(dirname):
        raise ValueError(f"There is no directory named {os.fspath(dirname)!r}")
    if not os.path.exists(lookup_table_var_path):
        raise ValueError(f"There is no file named {os.fspath(lookup_table_var_path)!r}")
    if not isinstance(program, Program) or program._ps_endpoint is None:
        raise ValueError("program must be an instance of fluid.Program, as get_pserver_program() gives it")
    program.global_block().var(lookup_table_var)
    load_parts(Path(dirname), program, {lookup_table_var: Path(lookup_table_var_path)})


Reader = Callable[[], Iterable[Any]]


def distributed_batch_reader(batch_reader: Reader) -> Reader:
    """A reader of every n-th batch, for one of n trainers (`fluid.contrib.reader.distributed_batch_reader`).

    PADDLE_TRAINERS_NUM (1 by default) and PADDLE_TRAINER_ID (0 by default) are read when the function is called. The
    last batches are dropped if there are fewer than trainers.

    Raises:
        ValueError: PADDLE_TRAINER_ID is out of range.
    """
    count = int(os.getenv("PADDLE_TRAINERS_NUM", "1"))
    own = int(os.getenv("PADDLE_TRAINER_ID", "0"))
    if not 0 <= own < count:
        raise ValueError(f"PADDLE_TRAINER_ID must be from 0 to {count - 1}, got {own}")

    def reader() -> Iterator[Any]:
        batches = iter(batch_reader())
        while len(group := list(islice(batches, count))) == count:
            yield group[own]

    return reader
