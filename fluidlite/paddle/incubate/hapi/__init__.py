"""`paddle.incubate.hapi`: the high-level API as it was before Paddle 2.0."""

from ....base import missing
from . import distributed, vision

__all__ = ["distributed", "vision"]

__getattr__ = missing.reporter(__name__)
