"""Machines, processes and starting them (`paddle.distributed.utils`)."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from .spawning import fluidlite_command

__all__: list[str] = []

logger = logging.getLogger()


class Hdfs:
    """Where an HDFS is: its name, user and path."""

    def __init__(self) -> None:
        self.hdfs_ugi: str | None = None
        self.hdfs_name: str | None = None
        self.hdfs_path: str | None = None

    def is_valid(self) -> bool:
        """Whether all of it is known."""
        return None not in (self.hdfs_ugi, self.hdfs_name, self.hdfs_path)

    def __str__(self) -> str:
        return f"hdfs_ugi:{self.hdfs_ugi} hdfs_name:{self.hdfs_name} hdfs_path{self.hdfs_path}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Hdfs) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]


class JobServer:
    """Where the server of a job is."""

    def __init__(self) -> None:
        self.endpoint: str | None = None

    def __str__(self) -> str:
        return f"{self.endpoint}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JobServer) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]


class Trainer:
    """A process: its GPUs, its address, its number."""

    def __init__(self) -> None:
        self.gpus: list[str] = []
        self.endpoint: str | None = None
        self.rank: int | None = None

    def __str__(self) -> str:
        return f"gpu:{self.gpus} endpoint:{self.endpoint} rank:{self.rank}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Trainer) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]


class Pod:
    """A machine: its number and address, and its processes."""

    def __init__(self) -> None:
        self.rank: int | None = None
        self.id: str | None = None
        self.addr: str | None = None
        self.port: int | None = None
        self.trainers: list[Trainer] = []
        self.gpus: list[str] = []

    def __str__(self) -> str:
        trainers = [str(trainer) for trainer in self.trainers]
        return (
            f"rank:{self.rank} id:{self.id} addr:{self.addr} port:{self.port} "
            f"visible_gpu:{self.gpus} trainers:{trainers}"
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pod) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def get_visible_gpus(self) -> str:
        """Its GPUs, with commas between them."""
        return ",".join(map(str, self.gpus))


class Cluster:
    """The machines of a run.

    Args:
        hdfs: the `Hdfs` that they share, or None.
    """

    def __init__(self, hdfs: Hdfs | None) -> None:
        self.job_server: JobServer | None = None
        self.pods: list[Pod] = []
        self.hdfs = hdfs
        self.job_stage_flag: str | None = None

    def __str__(self) -> str:
        pods = [str(pod) for pod in self.pods]
        return (
            f"job_server:{self.job_server} pods:{pods} job_stage_flag:{self.job_stage_flag} hdfs:{self.hdfs}"
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cluster) and self.pods == other.pods

    __hash__ = None  # type: ignore[assignment]

    def update_pods(self, cluster: Cluster) -> None:
        """Have the machines of another cluster."""
        self.pods = list(cluster.pods)

    def trainers_nranks(self) -> int:
        """How many processes there are."""
        return len(self.trainers_endpoints())

    def pods_nranks(self) -> int:
        """How many machines there are."""
        return len(self.pods)

    def trainers_endpoints(self) -> list[str]:
        """The addresses of all processes, by rank."""
        return [str(trainer.endpoint) for pod in self.pods for trainer in pod.trainers]

    def pods_endpoints(self) -> list[str]:
        """The addresses of all machines."""
        return [f"{pod.addr}:{pod.port}" for pod in self.pods]

    def get_pod_by_id(self, pod_id: str) -> Pod | None:
        """The machine of that id."""
        return next((pod for pod in self.pods if str(pod_id) == str(pod.id)), None)


class TrainerProc:
    """A process that was started."""

    def __init__(self) -> None:
        self.proc: Any = None
        self.log_fn: Any = None
        self.log_offset: int | None = None
        self.rank: int | None = None
        self.local_rank: int | None = None
        self.cmd: Any = None


def get_logger(log_level: int, name: str = "root") -> logging.Logger:
    """A logger that says level, time and place, at `log_level`."""
    logger = logging.getLogger(name)
    logger.setLevel(log_level)
    if not logger.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(
            logging.Formatter("%(levelname)s %(asctime)s %(filename)s:%(lineno)d] %(message)s")
        )
        logger.addHandler(handler)
    return logger


def get_cluster(
    node_ips: Sequence[str],
    node_ip: str,
    trainer_endpoints: Sequence[Sequence[str]],
    selected_gpus: Sequence[str],
) -> tuple[Cluster, Pod]:
    """A cluster with a process for each of `selected_gpus` on each of `node_ips`, and the machine `node_ip`.

    `trainer_endpoints`: the addresses of the processes of each machine.
    """
    cluster = Cluster(hdfs=None)
    rank = 0
    for number, address in enumerate(node_ips):
        pod = Pod()
        pod.rank, pod.addr = number, address
        for gpu, endpoint in zip(selected_gpus, trainer_endpoints[number], strict=False):
            trainer = Trainer()
            trainer.gpus.append(gpu)
            trainer.endpoint, trainer.rank = f"{endpoint}", rank
            pod.trainers.append(trainer)
            rank += 1
        cluster.pods.append(pod)
    return cluster, cluster.pods[list(node_ips).index(node_ip)]


def get_host_name_ip() -> tuple[str, str] | None:
    """The name of this machine and its address; None if it has none."""
    try:
        name = socket.gethostname()
        return name, socket.gethostbyname(socket.getfqdn(name))
    except OSError:
        return None


def add_arguments(
    argname: str, type: Any, default: Any, help: str, argparser: argparse.ArgumentParser, **kwargs: Any
) -> None:
    """Add `--argname` to a parser; truths are written True and False."""
    if type is bool:
        type = _truth
    argparser.add_argument(
        f"--{argname}", default=default, type=type, help=f"{help} Default: %(default)s.", **kwargs
    )


def _truth(text: str) -> bool:
    return text.lower() in ("y", "yes", "t", "true", "on", "1")


def find_free_ports(num: int) -> set[int]:
    """`num` free ports of this machine."""
    found: set[int] = set()
    with ExitStack() as held:
        while len(found) < num:
            listener = held.enter_context(closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)))
            listener.bind(("", 0))
            found.add(listener.getsockname()[1])
    return found


def start_local_trainers(
    cluster: Cluster,
    pod: Pod,
    training_script: str,
    training_script_args: Sequence[str],
    log_dir: str | None = None,
) -> list[TrainerProc]:
    """Start the processes of a machine, with Fluid's environment, and do not wait for them.

    Such processes are not connected through MPI: they are for scripts that exchange nothing, or by other ways.
    """
    started = []
    for local, trainer in enumerate(pod.trainers):
        environment = {
            **os.environ,
            "FLAGS_selected_gpus": ",".join(map(str, trainer.gpus)),
            "PADDLE_TRAINER_ID": str(trainer.rank),
            "PADDLE_CURRENT_ENDPOINT": str(trainer.endpoint),
            "PADDLE_TRAINERS_NUM": str(cluster.trainers_nranks()),
            "PADDLE_TRAINER_ENDPOINTS": ",".join(cluster.trainers_endpoints()),
        }
        made = TrainerProc()
        made.cmd = fluidlite_command([training_script, *training_script_args])
        if log_dir is not None:
            Path(log_dir).mkdir(parents=True, exist_ok=True)
            made.log_fn = Path(log_dir, f"workerlog.{local}").open("a", encoding="utf8")
        made.proc = subprocess.Popen(made.cmd, env=environment, stdout=made.log_fn, stderr=made.log_fn)
        made.rank, made.local_rank, made.log_offset = trainer.rank, local, 0
        started.append(made)
    return started


def watch_local_trainers(procs: Sequence[TrainerProc], nranks: int) -> bool:
    """Whether some of the processes still run; when one has failed, the others are ended and this process as well."""
    states = [made.proc.poll() for made in procs]
    if any(states):
        failed = [made.rank for made, state in zip(procs, states, strict=True) if state]
        terminate_local_procs(procs)
        print(f"of {nranks} trainers those of rank {failed} failed", file=sys.stderr)
        sys.exit(1)
    return None in states


def terminate_local_procs(procs: Sequence[TrainerProc]) -> None:
    """End processes; those that do not within 3 seconds are killed."""
    for made in procs:
        if made.proc.poll() is None:
            made.proc.send_signal(signal.SIGTERM)
    limit = time.monotonic() + 3
    for made in procs:
        try:
            made.proc.wait(max(0.0, limit - time.monotonic()))
        except subprocess.TimeoutExpired:
            made.proc.kill()
            made.proc.wait()
        if made.log_fn is not None:
            made.log_fn.close()
