"""Data sets of images, and transforms (`paddle.vision`)."""

from ...base import missing
from . import datasets, transforms

__all__ = ["datasets", "transforms"]

__getattr__ = missing.reporter(__name__)
