"""`python -m paddle.distributed.launch SCRIPT`: a script in several processes, with Fluid's options."""

from __future__ import annotations

import logging
import os
import sys
from argparse import REMAINDER, ArgumentParser, Namespace
from sys import version as version  # a name of this module in Fluid
from typing import Any

from ...base.errors import NotSupportedError
from ...base.place import cuda_places, is_compiled_with_cuda
from ...distributed import launching
from ...distributed.environment import FIRST_PORT, LOCAL_GPUS
from . import cloud_utils
from .spawning import fluidlite_command
from .utils import (
    Cluster,
    Pod,
    get_cluster,
    get_logger,
)

__all__: list[str] = []

logger = get_logger(logging.INFO)


def _parse_args() -> Namespace:
    parser = ArgumentParser(description="Run a script in several processes that train together.")
    add = parser.add_argument
    add("--cluster_node_ips", type=str, default="127.0.0.1", help="the machines, with commas between them")
    add("--node_ip", type=str, default="127.0.0.1", help="this machine among them")
    add("--use_paddlecloud", action="store_true", help="take the machines from PaddleCloud's environment")
    add("--started_port", type=int, default=None, help="the port of the first process of each machine")
    add("--print_config", type=bool, default=True, help="whether to print the options")
    add("--selected_gpus", type=str, default=None, help="the GPUs of each machine, a process each")
    add("--nproc_per_node", type=int, default=None, help="processes on each machine, if not by GPUs")
    add("--log_level", type=int, default=20, help="what is logged, as logging.INFO")
    add("--log_dir", type=str, default=None, help="where workerlog.N gets what process N prints")
    add("training_script", type=str, help="the script")
    add("training_script_args", nargs=REMAINDER, help="its arguments")
    return parser.parse_args()


def _print_arguments(args: Namespace) -> None:
    print("-----------  Configuration Arguments -----------")
    for name, value in sorted(vars(args).items()):
        print(f"{name}: {value}")
    print("------------------------------------------------")


def get_gpus(selected_gpus: str | None) -> list[str]:
    """The GPUs of this machine that take part, numbered as CUDA_VISIBLE_DEVICES lists them; by default all.

    Raises ValueError for one that CUDA_VISIBLE_DEVICES does not list.
    """
    if selected_gpus is None:
        return [str(k) for k in range(len(cuda_places()) if is_compiled_with_cuda() else 0)]
    wanted = [gpu.strip() for gpu in selected_gpus.split(",")]
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    if not visible:
        return wanted
    listed = visible.split(",")
    for gpu in wanted:
        if gpu not in listed:
            raise ValueError(f"GPU {gpu} is not among CUDA_VISIBLE_DEVICES={visible}")
    return [str(listed.index(gpu)) for gpu in wanted]


def get_cluster_from_args(args: Namespace, selected_gpus: list[str]) -> tuple[Cluster, Pod]:
    """All machines and processes that the options name, and this machine among them."""
    hosts = [host.strip() for host in args.cluster_node_ips.split(",")]
    if args.node_ip not in hosts:
        raise ValueError(f"node_ip {args.node_ip} is not among cluster_node_ips {hosts}")
    first = args.started_port or FIRST_PORT
    endpoints = [[f"{host}:{first + k}" for k in range(len(selected_gpus))] for host in hosts]
    return get_cluster(hosts, args.node_ip, endpoints, selected_gpus)


def launch(args: Namespace) -> int:
    """Start the processes on all machines and wait for their end; exits with their status if it is not 0.

    The first machine of several starts those of all, by mpiexec; on the others there is nothing to do. Without
    `selected_gpus` and `nproc_per_node` there is a process for each GPU, or one on each machine without any.
    """
    if args.print_config:
        _print_arguments(args)
    gpus = get_gpus(args.selected_gpus)
    count = args.nproc_per_node or len(gpus) or 1
    numbers = gpus if len(gpus) == count else [str(k) for k in range(count)]
    if args.use_paddlecloud and cloud_utils.get_trainers_num() != 1:
        cluster, pod = cloud_utils.get_cloud_cluster(
            args.cluster_node_ips, args.node_ip, args.started_port, numbers
        )
    else:
        cluster, pod = get_cluster_from_args(args, numbers)
    if pod.rank != 0:
        logger.info("the first machine, %s, starts the processes of all", cluster.pods[0].addr)
        return 0
    endpoints = cluster.trainers_endpoints()
    hosts = [endpoint.rpartition(":")[0] for endpoint in endpoints]
    port = int(endpoints[0].rpartition(":")[2])
    command = fluidlite_command([args.training_script, *args.training_script_args])
    status = launching.launch(
        command, hosts, port, args.log_dir, {LOCAL_GPUS: ",".join(gpus)} if len(gpus) == count else None
    )
    if status:
        sys.exit(status)
    return 0


def main() -> Any:
    """The command."""
    args = _parse_args()
    try:
        return launch(args)
    except (ValueError, NotSupportedError) as error:
        print(f"paddle.distributed.launch: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
