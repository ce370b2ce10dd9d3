# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.paddle.hapi.distributed import (
    DistributedBatchSampler as DistributedBatchSampler,
)
