# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from . import (
    cloud_utils as cloud_utils,
    fs_wrapper as fs_wrapper,
    launch as launch,
    launch_ps as launch_ps,
    utils as utils,
)
from fluidlite.paddle.distributed import (
    ParallelEnv as ParallelEnv,
    ReduceOp as ReduceOp,
    all_gather as all_gather,
    all_reduce as all_reduce,
    barrier as barrier,
    broadcast as broadcast,
    get_rank as get_rank,
    get_world_size as get_world_size,
    init_parallel_env as init_parallel_env,
    reduce as reduce,
    scatter as scatter,
    spawn as spawn,
)
