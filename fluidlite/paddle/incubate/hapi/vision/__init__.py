"""`paddle.incubate.hapi.vision`: images for models."""

from .....base import missing
from . import transforms
from .transforms.transforms import *  # noqa: F403

__all__ = ["transforms", *transforms.transforms.__all__]

__getattr__ = missing.reporter(__name__)
