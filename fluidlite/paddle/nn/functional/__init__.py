"""Functions that layers are made of (`paddle.nn.functional`): each topic in a module of its own."""

from typing import TYPE_CHECKING

from ....base import missing
from ....base.public_names import public_names
from .activation import *  # noqa: F403
from .common import *  # noqa: F403
from .conv import *  # noqa: F403
from .loss import *  # noqa: F403
from .norm import *  # noqa: F403
from .pooling import *  # noqa: F403
from .vision import *  # noqa: F403

if not TYPE_CHECKING:
    __all__ = public_names(__name__)

__getattr__ = missing.reporter(__name__)
