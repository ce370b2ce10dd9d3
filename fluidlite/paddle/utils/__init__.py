"""`paddle.utils`: exchange of tensors with other libraries (`paddle.utils.dlpack`)."""

from ...base import missing
from . import dlpack

__all__ = ["dlpack"]

__getattr__ = missing.reporter(__name__)
