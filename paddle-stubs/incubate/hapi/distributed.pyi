# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.paddle.incubate.hapi.distributed import (
    BatchSampler as BatchSampler,
    DistributedBatchSampler as DistributedBatchSampler,
    ParallelEnv as ParallelEnv,
)
