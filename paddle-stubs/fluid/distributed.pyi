# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.distributed import (
    Alone as Alone,
    Communicator as Communicator,
    DistributedError as DistributedError,
    RankLost as RankLost,
    Trainer as Trainer,
    trainer as trainer,
    world as world,
)
