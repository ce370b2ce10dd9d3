"""A barrier of workers by files on HDFS (`fluid.incubate.fleet.utils.fleet_barrier_util`)."""

from __future__ import annotations

import os
import tempfile
import time

from ....base import missing
from ....base.errors import NotSupportedError
from ..parameter_server.distribute_transpiler import fleet
from .hdfs import HDFSClient

__all__ = ["check_all_trainers_ready"]


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


__getattr__ = missing.reporter(__name__)
