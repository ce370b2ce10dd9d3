"""`python -m paddle.distributed.launch_ps SCRIPT`: a script as parameter servers and workers, with Fluid's options."""

from __future__ import annotations

import sys
from argparse import REMAINDER, ArgumentParser, Namespace

from ...base.errors import NotSupportedError
from ...distributed import serving
from ...distributed.environment import FIRST_PORT
from .launch import _print_arguments
from .spawning import fluidlite_command

__all__: list[str] = []


def parse_args() -> Namespace:
    """The options of the command line."""
    parser = ArgumentParser(description="Run a script as parameter servers and workers.")
    add = parser.add_argument
    add("--cluster_node_ips", type=str, default="127.0.0.1", help="the machines, with commas between them")
    add("--node_ip", type=str, default="127.0.0.1", help="this machine among them")
    add("--start_port", type=int, default=FIRST_PORT, help="the port of the first server of a machine")
    add("--print_config", type=bool, default=True, help="whether to print the options")
    add("--endpoints", type=str, default="", help="IP:PORT of each server, in place of the options above")
    add("--worker_num", type=int, default=2, help="number of workers")
    add("--server_num", type=int, default=2, help="number of servers")
    add(
        "--log_dir",
        type=str,
        default=None,
        help="where serverlog.N and workerlog.N go; the terminal if not set",
    )
    add("--restart", type=int, default=0, help="the number of restarts after failures")
    add("training_script", type=str, help="the script")
    add("training_script_args", nargs=REMAINDER, help="its arguments")
    return parser.parse_args()


def start_procs(args: Namespace) -> int:
    """Start servers and workers on this machine, and wait for the workers; exits with a status other than 0.

    Raises NotSupportedError for several machines: start servers and workers there by TRAINING_ROLE.
    """
    if args.print_config:
        _print_arguments(args)
    hosts = args.cluster_node_ips.split(",")
    if len(hosts) > 1:
        raise NotSupportedError(
            f"launch_ps starts processes on one machine, not on {len(hosts)}: run the script on each with "
            "TRAINING_ROLE, PADDLE_PSERVERS_IP_PORT_LIST, PADDLE_TRAINERS_NUM and POD_IP, PADDLE_PORT or "
            "PADDLE_TRAINER_ID set"
        )
    endpoints = [f"{args.node_ip}:{args.start_port + k}" for k in range(args.server_num)]
    if args.endpoints:
        endpoints = args.endpoints.split(",")
    command = fluidlite_command([args.training_script, *args.training_script_args])
    status = serving.run(command, endpoints, args.worker_num, args.log_dir, args.restart)
    if status:
        sys.exit(status)
    return 0


def launch() -> None:
    """The command."""
    try:
        start_procs(parse_args())
    except (ValueError, NotSupportedError) as error:
        print(f"paddle.distributed.launch_ps: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    launch()
