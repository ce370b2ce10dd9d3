"""Functions that layers are made of (`paddle.nn.functional`): each topic in a module of its own."""

from ....base import missing
from . import activation, common, conv, loss, norm, pooling, vision
from .activation import *  # noqa: F403
from .common import *  # noqa: F403
from .conv import *  # noqa: F403
from .loss import *  # noqa: F403
from .norm import *  # noqa: F403
from .pooling import *  # noqa: F403
from .vision import *  # noqa: F403

__all__ = []
__all__ += activation.__all__
__all__ += common.__all__
__all__ += conv.__all__
__all__ += loss.__all__
__all__ += norm.__all__
__all__ += pooling.__all__
__all__ += vision.__all__

__getattr__ = missing.reporter(__name__)
