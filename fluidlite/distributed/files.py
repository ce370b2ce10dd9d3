"""File systems of checkpoints, local or HDFS, behind one interface."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path


class FS:
    """The interface of file systems. Paths are strings; operations that one does not have raise NotImplementedError."""

    def list_dirs(self, fs_path: str) -> list[str]:
        """The names of the folders in a folder; [] if it does not exist."""
        raise self._without("list_dirs")

    def ls_dir(self, fs_path: str) -> list[str]:
        """The names of the files and folders in a folder."""
        raise self._without("ls_dir")

    def stat(self, fs_path: str) -> bool:
        """True if a path exists."""
        raise self._without("stat")

    def upload(self, local_path: str, fs_path: str) -> None:
        """Copy a local file or folder to the file system."""
        raise self._without("upload")

    def download(self, fs_path: str, local_path: str) -> None:
        """Copy a file or folder to a local path."""
        raise self._without("download")

    def mkdir(self, fs_path: str) -> None:
        """Make a folder and its parents."""
        raise self._without("mkdir")

    def mv(self, fs_src_path: str, fs_dst_path: str) -> None:
        """Move a file or folder."""
        raise self._without("mv")

    def rmr(self, fs_path: str) -> None:
        """Remove a folder recursively."""
        raise self._without("rmr")

    def rm(self, fs_path: str) -> None:
        """Remove a file."""
        raise self._without("rm")

    def delete(self, fs_path: str) -> None:
        """Remove a file or folder if it exists."""
        raise self._without("delete")

    def need_upload_download(self) -> bool:
        """True if files must be copied to a local path before they can be opened."""
        raise self._without("need_upload_download")

    def _without(self, name: str) -> NotImplementedError:
        return NotImplementedError(f"{type(self).__name__} has no {name}")


class LocalFS(FS):
    """The files of this machine."""

    def list_dirs(self, fs_path: str) -> list[str]:
        if not self.stat(fs_path):
            return []
        return [path.name for path in Path(fs_path).iterdir() if path.is_dir()]

    def ls_dir(self, fs_path: str) -> list[str]:
        return [path.name for path in Path(fs_path).iterdir()]

    def stat(self, fs_path: str) -> bool:
        return Path(fs_path).exists()

    def mkdir(self, fs_path: str) -> None:
        if Path(fs_path).is_file():
            raise AssertionError(f"{fs_path} is already a file")
        Path(fs_path).mkdir(parents=True, exist_ok=True)

    def mv(self, fs_src_path: str, fs_dst_path: str) -> None:
        Path(fs_src_path).rename(fs_dst_path)

    def rmr(self, fs_path: str) -> None:
        shutil.rmtree(fs_path)

    def rm(self, fs_path: str) -> None:
        Path(fs_path).unlink()

    def delete(self, fs_path: str) -> None:
        if Path(fs_path).is_dir():
            self.rmr(fs_path)
        elif self.stat(fs_path):
            self.rm(fs_path)

    def need_upload_download(self) -> bool:
        return False


class BDFS(FS):
    """The files of an HDFS, by the command `hadoop fs`.

    Args:
        hdfs_name: Hadoop's `fs.default.name`.
        hdfs_ugi: user and password, as `hadoop.job.ugi`.
        time_out: the time limit of a command in milliseconds.
        sleep_inter: milliseconds between attempts; a command is tried once here.

    Raises RuntimeError when a command fails, with its output.
    """

    def __init__(
        self, hdfs_name: str, hdfs_ugi: str, time_out: int = 20 * 60 * 1000, sleep_inter: int = 1000
    ) -> None:
        self._command = ["hadoop", "fs", "-D", f"fs.default.name={hdfs_name}"]
        self._command += ["-D", f"hadoop.job.ugi={hdfs_ugi}"]
        self._timeout = time_out / 1000

    def _run_cmd(self, *words: str) -> tuple[int, str]:
        """Exit status and output of a command of `hadoop fs`."""
        try:
            done = subprocess.run(
                [*self._command, *words], capture_output=True, text=True, timeout=self._timeout, check=False
            )
        except FileNotFoundError:
            raise RuntimeError(
                "there is no command `hadoop` here: put Hadoop's bin folder into PATH"
            ) from None
        return done.returncode, done.stdout + done.stderr

    def _must(self, *words: str) -> str:
        status, text = self._run_cmd(*words)
        if status:
            raise RuntimeError(f"hadoop fs {' '.join(words)} failed: {text.strip()}")
        return text

    def _listed(self, fs_path: str, kinds: str) -> list[str]:
        rows = [line.split() for line in self._must("-ls", fs_path).splitlines()]
        return [Path(row[-1]).name for row in rows if len(row) >= 8 and row[0][0] in kinds]

    def list_dirs(self, fs_path: str) -> list[str]:
        return self._listed(fs_path, "d") if self.stat(fs_path) else []

    def ls_dir(self, fs_path: str) -> list[str]:
        return self._listed(fs_path, "d-")

    def is_dir(self, fs_path: str) -> bool:
        """True if a path is a folder."""
        return self._run_cmd("-test", "-d", fs_path)[0] == 0

    def stat(self, fs_path: str) -> bool:
        return self._run_cmd("-test", "-e", fs_path)[0] == 0

    def upload(self, local_path: str, fs_path: str) -> None:
        self._must("-put", local_path, fs_path)

    def download(self, fs_path: str, local_path: str) -> None:
        self._must("-get", fs_path, local_path)

    def mkdir(self, fs_path: str) -> None:
        if not self.stat(fs_path):
            self._must("-mkdir", "-p", fs_path)

    def mv(self, fs_src_path: str, fs_dst_path: str) -> None:
        self._must("-mv", fs_src_path, fs_dst_path)

    def rmr(self, fs_path: str) -> None:
        self._must("-rm", "-r", fs_path)

    def rm(self, fs_path: str) -> None:
        self._must("-rm", fs_path)

    def delete(self, fs_path: str) -> None:
        if self.stat(fs_path):
            self.rmr(fs_path)

    def need_upload_download(self) -> bool:
        return True
