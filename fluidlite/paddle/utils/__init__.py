"""`paddle.utils`: exchange of tensors with other libraries (`paddle.utils.dlpack`), curves (`paddle.utils.plot`)."""

from ...base import missing
from . import dlpack, image_util, plot
from .plot import Ploter

__all__ = ["Ploter", "dlpack", "image_util", "plot"]

__getattr__ = missing.reporter(__name__)
