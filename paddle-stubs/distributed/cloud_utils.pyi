# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    paddle as paddle,
)
from fluidlite.paddle.distributed.cloud_utils import (
    get_cloud_cluster as get_cloud_cluster,
    get_cluster as get_cluster,
    get_trainers_num as get_trainers_num,
    logger as logger,
)
