# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    paddle as paddle,
)
from fluidlite.paddle.distributed import (
    cloud_utils as cloud_utils,
)
from fluidlite.paddle.distributed.launch import (
    REMAINDER as REMAINDER,
    get_cluster_from_args as get_cluster_from_args,
    get_gpus as get_gpus,
    launch as launch,
    logger as logger,
    version as version,
)
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
    start_local_trainers as start_local_trainers,
    terminate_local_procs as terminate_local_procs,
    watch_local_trainers as watch_local_trainers,
)
