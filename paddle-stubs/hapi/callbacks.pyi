# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.paddle.hapi.callbacks import Callback as Callback
from fluidlite.paddle.hapi.callbacks import (
    EarlyStopping as EarlyStopping,
    LRScheduler as LRScheduler,
    ModelCheckpoint as ModelCheckpoint,
    ReduceLROnPlateau as ReduceLROnPlateau,
    all_of as all_of,
)
from fluidlite.paddle.hapi.callbacks import ProgBarLogger as ProgBarLogger
