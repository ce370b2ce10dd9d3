"""`paddle.batch`: lists of samples from a reader of samples."""

from ..reader import batch

__all__ = ["batch"]
