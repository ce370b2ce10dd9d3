"""The machines and processes that PaddleCloud's environment names (`paddle.distributed.cloud_utils`)."""

from __future__ import annotations

import os

from ...distributed.environment import FIRST_PORT
from .utils import Cluster, Pod, get_cluster, get_logger

__all__: list[str] = []

logger = get_logger(20)


def get_trainers_num() -> int:
    """How many machines there are (PADDLE_TRAINERS_NUM)."""
    return int(os.getenv("PADDLE_TRAINERS_NUM", "1"))


def get_cloud_cluster(
    args_node_ips: str, args_node_ip: str, args_port: int | None, selected_gpus: list[str]
) -> tuple[Cluster, Pod]:
    """All processes, one for each of `selected_gpus` on each machine of PADDLE_TRAINERS, and this machine (POD_IP).

    The arguments are overridden by the environment. Raises ValueError if that lists no machines.
    """
    listed = os.getenv("PADDLE_TRAINERS")
    own = os.getenv("POD_IP", args_node_ip)
    if not listed:
        raise ValueError("PADDLE_TRAINERS must list the machines of PaddleCloud, with commas between them")
    hosts = listed.split(",")
    count = len(selected_gpus)
    ports = os.getenv("TRAINER_PORTS", "")
    numbers = [int(p) for p in ports.split(",")][:count] if ports else []
    if len(numbers) < count:
        first = int(os.getenv("PADDLE_PORT", args_port or FIRST_PORT))
        numbers = [first + k for k in range(count)]
    endpoints = [[f"{host}:{port}" for port in numbers] for host in hosts]
    return get_cluster(hosts, own, endpoints, selected_gpus)
