"""`fluid.contrib.mixed_precision`: training in float16 where it is safe, with a scaled loss."""

from . import decorator, fp16_utils
from .decorator import decorate
from .fp16_utils import AutoMixedPrecisionLists

__all__ = ["AutoMixedPrecisionLists", "decorate", "decorator", "fp16_lists", "fp16_utils"]
