# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from . import (
    lr as lr,
    optimizer as optimizer,
)
from fluidlite.paddle.optimizer import (
    Adadelta as Adadelta,
    Adagrad as Adagrad,
    Adam as Adam,
    AdamW as AdamW,
    Adamax as Adamax,
    Lamb as Lamb,
    Momentum as Momentum,
    Optimizer as Optimizer,
    RMSProp as RMSProp,
    SGD as SGD,
)
