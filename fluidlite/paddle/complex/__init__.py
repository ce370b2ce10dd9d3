"""Functions of complex numbers, which are pairs of variables (`paddle.complex`, `fluid.ComplexVariable`)."""

from ...base import missing
from . import helper, tensor
from .tensor import *  # noqa: F403

__all__ = ["helper", "tensor"]
__all__ += tensor.__all__

__getattr__ = missing.reporter(__name__)
