"""The layers of `paddle.nn`: each topic in a module of its own."""

from typing import TYPE_CHECKING

from ....base import missing

if TYPE_CHECKING:
    from .common import *  # noqa: F403
    from .conv import *  # noqa: F403
    from .norm import *  # noqa: F403
    from .of_functions import *  # noqa: F403
    from .rnn import *  # noqa: F403
    from .transformer import *  # noqa: F403
else:
    __all__ = missing.public(__name__)

__getattr__, __dir__ = missing.lazy(__name__)
