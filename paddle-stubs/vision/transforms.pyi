# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.paddle.vision import (
    Compose as Compose,
    Normalize as Normalize,
    RandomCrop as RandomCrop,
    RandomHorizontalFlip as RandomHorizontalFlip,
    ToTensor as ToTensor,
    Transpose as Transpose,
    normalize as normalize,
    to_tensor as to_tensor,
)
