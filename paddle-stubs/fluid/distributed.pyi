# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.distributed import (
    Alone as Alone,
    Communicator as Communicator,
    DistributedError as DistributedError,
    RankLost as RankLost,
    Trainer as Trainer,
    begin_step as begin_step,
    is_parallel as is_parallel,
    trainer as trainer,
    world as world,
)
