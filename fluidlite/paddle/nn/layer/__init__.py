"""The layers of `paddle.nn`: each topic in a module of its own."""

from . import activation, common, container, conv, loss, norm, pooling, rnn, rnn_cell, transformer
from .activation import *  # noqa: F403
from .common import *  # noqa: F403
from .container import *  # noqa: F403
from .conv import *  # noqa: F403
from .loss import *  # noqa: F403
from .norm import *  # noqa: F403
from .pooling import *  # noqa: F403
from .rnn import *  # noqa: F403
from .rnn_cell import *  # noqa: F403
from .transformer import *  # noqa: F403

__all__ = []
__all__ += activation.__all__
__all__ += common.__all__
__all__ += container.__all__
__all__ += conv.__all__
__all__ += loss.__all__
__all__ += norm.__all__
__all__ += pooling.__all__
__all__ += rnn.__all__
__all__ += rnn_cell.__all__
__all__ += transformer.__all__
