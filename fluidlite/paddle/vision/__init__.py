"""Images: data sets and what is done to them before they are learnt from (`paddle.vision`)."""

from ...base import missing
from . import datasets, transforms

__all__ = ["datasets", "transforms"]

__getattr__ = missing.reporter(__name__)
