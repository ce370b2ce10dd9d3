# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid.dygraph.parallel import (
    ParallelEnv as ParallelEnv,
)
from fluidlite.paddle.hapi.model import (
    DistributedBatchSampler as DistributedBatchSampler,
)
from fluidlite.reader.samplers import (
    FluidBatchSampler as BatchSampler,
)
