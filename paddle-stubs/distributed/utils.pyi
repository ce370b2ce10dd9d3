# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.paddle.distributed.utils import (
    Cluster as Cluster,
    Hdfs as Hdfs,
    JobServer as JobServer,
    Pod as Pod,
    Trainer as Trainer,
    TrainerProc as TrainerProc,
    add_arguments as add_arguments,
    find_free_ports as find_free_ports,
    get_cluster as get_cluster,
    get_host_name_ip as get_host_name_ip,
    get_logger as get_logger,
    logger as logger,
    start_local_trainers as start_local_trainers,
    terminate_local_procs as terminate_local_procs,
    watch_local_trainers as watch_local_trainers,
)
