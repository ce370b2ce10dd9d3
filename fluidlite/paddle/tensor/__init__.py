"""Functions of tensors (`paddle.tensor`): each topic in a module of its own."""

from typing import TYPE_CHECKING

from ...base import missing

if TYPE_CHECKING:
    from .creation import *  # noqa: F403
    from .linalg import *  # noqa: F403
    from .logic import *  # noqa: F403
    from .manipulation import *  # noqa: F403
    from .math import *  # noqa: F403
    from .random import *  # noqa: F403
    from .search import *  # noqa: F403
    from .stat import *  # noqa: F403
else:
    __all__ = missing.public(__name__)

__getattr__, __dir__ = missing.lazy(__name__)
