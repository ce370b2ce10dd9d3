# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from . import (
    datasets as datasets,
    transforms as transforms,
)
from fluidlite.paddle.vision import (
    Cifar10 as Cifar10,
    Cifar100 as Cifar100,
    Compose as Compose,
    MNIST as MNIST,
    Normalize as Normalize,
    RandomCrop as RandomCrop,
    RandomHorizontalFlip as RandomHorizontalFlip,
    ToTensor as ToTensor,
    Transpose as Transpose,
    normalize as normalize,
    to_tensor as to_tensor,
)
