"""Data sets of images, and transforms (`paddle.vision`)."""

from . import datasets, transforms

__all__ = ["datasets", "transforms"]
