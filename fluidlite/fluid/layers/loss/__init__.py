"""Losses, and what taggers and classifiers over many classes need (`fluid.layers.loss` and more)."""

from typing import TYPE_CHECKING

from ....base import missing

if TYPE_CHECKING:
    from .classification import *  # noqa: F403
    from .classification import cross_entropy2 as cross_entropy2
    from .classification import kIgnoreIndex as kIgnoreIndex
    from .sampled import *  # noqa: F403
    from .sequences import *  # noqa: F403
else:
    __all__ = missing.public(__name__)

__getattr__, __dir__ = missing.lazy(__name__)
