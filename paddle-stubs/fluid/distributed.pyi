# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    DistributedError as DistributedError,
    RankLost as RankLost,
)
from fluidlite.distributed.communicator import (
    Alone as Alone,
    Communicator as Communicator,
    begin_step as begin_step,
    is_parallel as is_parallel,
    world as world,
)
from fluidlite.distributed.environment import (
    Trainer as Trainer,
    trainer as trainer,
)
