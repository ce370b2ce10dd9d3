# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.paddle.hapi.model import (
    DistributedBatchSampler as DistributedBatchSampler,
    Model as Model,
)
