"""`paddle.incubate.hapi.vision.transforms`: images changed at random."""

from ......base import missing
from . import transforms
from .transforms import *  # noqa: F403

__all__ = ["transforms", *transforms.__all__]

__getattr__ = missing.reporter(__name__)
