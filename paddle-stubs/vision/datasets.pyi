# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.paddle.vision import (
    Cifar10 as Cifar10,
    Cifar100 as Cifar100,
    MNIST as MNIST,
)
