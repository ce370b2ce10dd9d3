# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.paddle.hapi.callbacks import (
    Callback as Callback,
    EarlyStopping as EarlyStopping,
    LRScheduler as LRScheduler,
    ModelCheckpoint as ModelCheckpoint,
    ProgBarLogger as ProgBarLogger,
    ReduceLROnPlateau as ReduceLROnPlateau,
)
