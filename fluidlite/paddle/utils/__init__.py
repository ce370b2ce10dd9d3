"""`paddle.utils`: exchange of tensors with other libraries (`paddle.utils.dlpack`), curves (`paddle.utils.plot`)."""

from ...base import missing
from . import dlpack, plot
from .plot import Ploter

__all__ = ["Ploter", "dlpack", "plot"]

__getattr__ = missing.reporter(__name__)
