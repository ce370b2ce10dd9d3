"""Files on HDFS, transferred in parallel (`fluid.incubate.fleet.utils.hdfs`)."""

from __future__ import annotations

import logging
import os
import tempfile
import time
from collections.abc import Sequence

from .....base.errors import NotSupportedError
from .....base.storage.files import is_draft
from ....contrib import utils
from ..parameter_server.distribute_transpiler import fleet

__all__ = ["HDFSClient", "get_logger"]


def get_logger(name: str, level: int, fmt: str) -> logging.Logger:
    """A logger that writes to the file `hdfs.log` of the current folder."""
    logger = logging.getLogger(name)
    logger.setLevel(level)
    handler = logging.FileHandler("hdfs.log", mode="w", delay=True)
    handler.setFormatter(logging.Formatter(fmt=fmt))
    logger.addHandler(handler)
    return logger


class HDFSClient(utils.HDFSClient):
    """`fluid.contrib.utils.HDFSClient` for files and folders (`fluid.incubate.fleet.utils.hdfs.HDFSClient`)."""

    def is_file(self, hdfs_path: str) -> bool:
        """True if the path is a file."""
        return self.is_exist(hdfs_path) and not self.is_dir(hdfs_path)

    def cat(self, hdfs_path: str) -> str:
        """The text of a file without the final line break; "" if it does not exist."""
        if not self.is_file(hdfs_path):
            return ""
        return self._run("-cat", hdfs_path)[1].rstrip("\n")

    def rename(self, hdfs_src_path: str, hdfs_dst_path: str, overwrite: bool = False) -> bool:
        """Move a path; returns True on success. `overwrite` removes an existing target first."""
        if overwrite and self.is_exist(hdfs_dst_path):
            self.delete(hdfs_dst_path)
        return super().rename(hdfs_src_path, hdfs_dst_path)

    def lsr(self, hdfs_path: str, excludes: Sequence[str] = ()) -> list[str]:  # type: ignore[override]
        """The files in a folder and its subfolders, except those whose path contains one of `excludes`."""
        paths = super().lsr(hdfs_path)
        return [path for path in paths if not any(part in path for part in excludes)]

    def upload(  # type: ignore[override]
        self,
        hdfs_path: str,
        local_path: str,
        multi_processes: int = 5,
        overwrite: bool = False,
        retry_times: int = 5,
    ) -> bool:
        """Upload a file, or the files of a folder, to the folder `hdfs_path`; returns True on success.

        `multi_processes`: the number of uploads in parallel. Raises AssertionError if `local_path` does not exist.
        """
        assert os.path.exists(local_path), f"there is no {local_path!r} to upload"
        names = [local_path]
        if os.path.isdir(local_path):
            names = [
                entry.path for entry in os.scandir(local_path) if entry.is_file() and not is_draft(entry.name)
            ]
        from concurrent.futures import ThreadPoolExecutor  # slow to import

        def put(name: str) -> bool:
            return super(HDFSClient, self).upload(hdfs_path, name, overwrite, retry_times)

        with ThreadPoolExecutor(multi_processes) as pool:
            return all(list(pool.map(put, names)))

    def upload_dir(self, dest_dir: str, local_dir: str, overwrite: bool = False) -> bool:
        """Upload a folder with its subfolders to the folder `dest_dir`; returns True on success."""
        target = f"{dest_dir.rstrip('/')}/{os.path.basename(local_dir.rstrip('/'))}"
        if self.is_exist(target):
            if not overwrite:
                return False
            self.delete(target)
        folders = {os.path.dirname(name) for name in utils.getfilelist(local_dir)}
        below = {folder: os.path.relpath(folder, local_dir) for folder in sorted(folders)}
        return all(
            [
                self.upload(target if inside == "." else f"{target}/{inside}", folder)
                for folder, inside in below.items()
            ]
        )

    def download(  # type: ignore[override]
        self,
        hdfs_path: str,
        local_path: str,
        multi_processes: int = 5,
        overwrite: bool = False,
        retry_times: int = 5,
    ) -> bool:
        """Download a file, or the files of a folder, to the folder `local_path`; returns True on success."""
        self.make_local_dirs(local_path)
        names = self.ls(hdfs_path) if self.is_dir(hdfs_path) else [hdfs_path]
        from concurrent.futures import ThreadPoolExecutor  # slow to import

        def get(name: str) -> bool:
            here = os.path.join(local_path, os.path.basename(name))
            return super(HDFSClient, self).download(name, here, overwrite)

        with ThreadPoolExecutor(multi_processes) as pool:
            return all(list(pool.map(get, names)))

    @staticmethod
    def split_files(files: Sequence[str], trainer_id: int, trainers: int) -> list[str]:
        """A trainer's share of `files`: a contiguous part; the first trainers get one more if needed."""
        share, more = divmod(len(files), trainers)
        begin = trainer_id * share + min(trainer_id, more)
        return list(files[begin : begin + share + (trainer_id < more)])


def check_all_trainers_ready(ready_path: str, epoch: int) -> None:
    """Upload a file for this worker and `epoch` to the folder `ready_path`, and wait for those of all workers.

    Environment variables: `HADOOP_HOME`, `FS_NAME`, `FS_UGI`. Raises NotSupportedError without `FS_NAME`. Follows
    `fluid.incubate.fleet.utils.fleet_barrier_util.check_all_trainers_ready`.
    """
    home, name, ugi = (os.environ.get(each) for each in ("HADOOP_HOME", "FS_NAME", "FS_UGI"))
    if name is None:
        raise NotSupportedError("check_all_trainers_ready needs FS_NAME, and FS_UGI, in the environment")
    client = HDFSClient(home or "", {"fs.default.name": name, "hadoop.job.ugi": ugi or ""})
    with tempfile.TemporaryDirectory() as folder:
        local = os.path.join(folder, f"ready.{epoch}.{fleet.worker_index()}.done")
        with open(local, "w", encoding="utf-8") as file:
            file.write("")
        client.upload(ready_path, local, overwrite=True)
    while True:
        ready = [path for path in client.ls(ready_path) if f"ready.{epoch}." in os.path.basename(path)]
        print(f"epoch {epoch}: {len(ready)} of {fleet.worker_num()} trainers are ready")
        if len(ready) >= fleet.worker_num():
            return
        time.sleep(10)
