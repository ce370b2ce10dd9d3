"""The environment variables of the processes of a run: Fluid's, and those of mpiexec."""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from dataclasses import dataclass

from ..base import flags

FIRST_PORT = 6170
"""The port of the first process in default addresses. Processes find each other through MPI; Fluid's scripts count and
compare the addresses."""

LOCAL_GPUS = "FLUIDLITE_LOCAL_GPUS"
"""The variable with the GPUs of a machine, one for each of its processes, set by a launcher."""

_BY_MPI = (("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("PMI_RANK", "PMI_SIZE"))


@dataclass(frozen=True)
class Trainer:
    """One of the processes of a run."""

    rank: int
    count: int
    endpoints: list[str]
    endpoint: str


def trainer() -> Trainer:
    """This process, from PADDLE_TRAINER_ID, PADDLE_TRAINERS_NUM, PADDLE_TRAINER_ENDPOINTS and PADDLE_CURRENT_ENDPOINT.

    Without these variables, the only process of a run.
    """
    listed = os.environ.get("PADDLE_TRAINER_ENDPOINTS", "")
    return Trainer(
        int(os.environ.get("PADDLE_TRAINER_ID", "0")),
        flags.trainers(),
        listed.split(",") if listed else [],
        os.environ.get("PADDLE_CURRENT_ENDPOINT", ""),
    )


def is_started_by_mpi() -> bool:
    """True if mpiexec has started this process."""
    return any(rank in os.environ for rank, _ in _BY_MPI)


def default_endpoints(count: int, hosts: list[str] | None = None, port: int = FIRST_PORT) -> list[str]:
    """Addresses of `count` processes, by rank; `hosts`: the machine of each, by default all this one."""
    places = hosts or ["127.0.0.1"] * count
    used: dict[str, int] = {}
    endpoints = []
    for host in places:
        used[host] = used.get(host, -1) + 1
        endpoints.append(f"{host}:{port + used[host]}")
    return endpoints


def adopt(environ: MutableMapping[str, str] = os.environ) -> None:
    """Set Fluid's variables from those of mpiexec, unless they are set or mpiexec has not started this process."""
    if "PADDLE_TRAINER_ID" in environ:
        return
    for rank_key, size_key in _BY_MPI:
        if rank_key in environ and size_key in environ:
            rank, count = int(environ[rank_key]), int(environ[size_key])
            break
    else:
        return
    if count < 2:
        return
    listed = environ.get("PADDLE_TRAINER_ENDPOINTS", "")
    endpoints = listed.split(",") if listed else default_endpoints(count)
    environ["PADDLE_TRAINER_ID"] = str(rank)
    environ["PADDLE_TRAINERS_NUM"] = str(count)
    environ["PADDLE_TRAINER_ENDPOINTS"] = ",".join(endpoints)
    environ["PADDLE_CURRENT_ENDPOINT"] = endpoints[rank]
    environ.setdefault("TRAINING_ROLE", "TRAINER")
    gpus = environ.get(LOCAL_GPUS)
    if gpus:
        environ["FLAGS_selected_gpus"] = gpus.split(",")[int(environ.get("OMPI_COMM_WORLD_LOCAL_RANK", "0"))]
