"""`paddle.incubate`."""

from ...base import missing
from . import hapi

__all__ = ["hapi"]

__getattr__ = missing.reporter(__name__)
