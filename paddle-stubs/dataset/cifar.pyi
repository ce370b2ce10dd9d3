# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    paddle as paddle,
)
from fluidlite.dataset.cifar import (
    CIFAR100_MD5 as CIFAR100_MD5,
    CIFAR100_URL as CIFAR100_URL,
    CIFAR10_MD5 as CIFAR10_MD5,
    CIFAR10_URL as CIFAR10_URL,
    URL_PREFIX as URL_PREFIX,
    fetch as fetch,
    reader_creator as reader_creator,
    test10 as test10,
    test100 as test100,
    train10 as train10,
    train100 as train100,
)
