"""The functions of layers (`paddle.nn.functional`): each topic in a module of its own."""

from typing import TYPE_CHECKING

from ....base import missing

if TYPE_CHECKING:
    from .activation import *  # noqa: F403
    from .common import *  # noqa: F403
    from .conv import *  # noqa: F403
    from .loss import *  # noqa: F403
    from .norm import *  # noqa: F403
    from .pooling import *  # noqa: F403
else:
    __all__ = missing.public(__name__)

__getattr__, __dir__ = missing.lazy(__name__)
