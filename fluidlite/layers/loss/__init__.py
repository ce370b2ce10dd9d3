"""Losses, and what taggers and classifiers over many classes need (`fluid.layers.loss` and more)."""

from ...base import missing
from . import centers, classification, crf, ctc, regression, sampled
from .centers import *  # noqa: F403
from .classification import *  # noqa: F403
from .classification import cross_entropy2 as cross_entropy2
from .classification import kIgnoreIndex as kIgnoreIndex
from .crf import *  # noqa: F403
from .ctc import *  # noqa: F403
from .regression import *  # noqa: F403
from .sampled import *  # noqa: F403

__all__ = []
__all__ += centers.__all__
__all__ += classification.__all__
__all__ += crf.__all__
__all__ += ctc.__all__
__all__ += regression.__all__
__all__ += sampled.__all__

__getattr__ = missing.reporter(__name__)
