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
    Cluster as Cluster,
    Pod as Pod,
    REMAINDER as REMAINDER,
    get_cluster as get_cluster,
    get_cluster_from_args as get_cluster_from_args,
    get_gpus as get_gpus,
    get_logger as get_logger,
    launch as launch,
    logger as logger,
    version as version,
)
from fluidlite.paddle.distributed.utils import (
    Hdfs as Hdfs,
    JobServer as JobServer,
    Trainer as Trainer,
    TrainerProc as TrainerProc,
    add_arguments as add_arguments,
    find_free_ports as find_free_ports,
    get_host_name_ip as get_host_name_ip,
    start_local_trainers as start_local_trainers,
    terminate_local_procs as terminate_local_procs,
    watch_local_trainers as watch_local_trainers,
)
