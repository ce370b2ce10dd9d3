"""Checkpoints of workers: folders with persistable variables and the training status."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from .....base.storage.files import write_file
from .....distributed.files import LocalFS
from .....executor import Executor
from .....framework import Program
from .... import io

PREFIX = "__paddle_fleet_checkpoint__"
PARAMETERS = "_paddle_fleet_param__"
STATUS = "fleet_train_status"
LOCAL = LocalFS()


class TrainStatus:
    """The progress of a training.

    Args:
        epoch_no: the last completed epoch; -1: none.
    """

    def __init__(self, epoch_no: int = -1) -> None:
        self._epoch_no = epoch_no

    def next(self) -> int:
        """The epoch to resume with."""
        return self._epoch_no + 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TrainStatus) and self._epoch_no == other._epoch_no

    def __hash__(self) -> int:
        return hash(self._epoch_no)


def numbers(root: str, fs: Any) -> list[int]:
    """The numbers of the checkpoints in a folder, sorted."""
    if not fs.stat(root):
        return []
    matches = [re.fullmatch(rf"{re.escape(PREFIX)}\.(\d+)", Path(name).name) for name in fs.list_dirs(root)]
    return sorted(int(match[1]) for match in matches if match)


def _folder(root: str, number: int) -> str:
    return f"{root}/{PREFIX}.{number}"


def save_status(path: str, status: TrainStatus) -> None:
    """Write a training status."""
    write_file(Path(path, STATUS), json.dumps({"epoch_no": status._epoch_no}))


def load_status(path: str) -> TrainStatus:
    """Read a training status."""
    return TrainStatus(int(json.loads(Path(path, STATUS).read_text(encoding="utf8"))["epoch_no"]))


def save(executor: Executor, root: str, status: TrainStatus, program: Program, fs: Any, cache: str) -> None:
    """Write a checkpoint under a temporary name and rename it when it is complete."""
    if not fs.stat(root):
        fs.mkdir(root)
    number = max(numbers(root, fs), default=-1) + 1
    unfinished = f"{_folder(root, number)}.tmp"
    away = fs.need_upload_download()
    local = f"{cache}/{PREFIX}.{number}.saved_cache" if away else unfinished
    if LOCAL.stat(local):
        LOCAL.delete(local)
    LOCAL.mkdir(local)
    io.save_persistables(executor, local, program, filename=PARAMETERS)
    save_status(local, status)
    if away:
        fs.delete(unfinished)
        fs.upload(local, unfinished)
        LOCAL.delete(local)
    fs.mv(unfinished, _folder(root, number))


def load(
    executor: Executor,
    root: str,
    trainer_id: int,
    program: Program,
    fs: Any,
    cache: str,
    ignore_empty: bool,
) -> TrainStatus | None:
    """Load the newest checkpoint; returns its training status."""
    listed = numbers(root, fs)
    if not listed:
        if not ignore_empty:
            raise AssertionError(f"Can't find checkpoint below {root}")
        return None
    folder = _folder(root, listed[-1])
    if fs.need_upload_download():
        local = f"{cache}/{PREFIX}.{listed[-1]}.load_cache.{trainer_id}"
        if LOCAL.stat(local):
            LOCAL.delete(local)
        fs.download(folder, local)
        folder = local
    io.load_persistables(executor, folder, program, filename=PARAMETERS)
    return load_status(folder)


def clean(root: str, fs: Any, count: int) -> None:
    """Remove all checkpoints except the newest `count`."""
    for number in numbers(root, fs)[: -max(1, count)]:
        fs.delete(_folder(root, number))
