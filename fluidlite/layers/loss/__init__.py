"""Losses, and what taggers and classifiers over many classes need (`fluid.layers.loss` and more)."""

from typing import TYPE_CHECKING

from ...base import missing
from ...base.public_names import public_names
from .centers import *  # noqa: F403
from .classification import *  # noqa: F403
from .classification import cross_entropy2 as cross_entropy2
from .classification import kIgnoreIndex as kIgnoreIndex
from .crf import *  # noqa: F403
from .ctc import *  # noqa: F403
from .regression import *  # noqa: F403
from .sampled import *  # noqa: F403

if not TYPE_CHECKING:
    __all__ = public_names(__name__)

__getattr__ = missing.reporter(__name__)
