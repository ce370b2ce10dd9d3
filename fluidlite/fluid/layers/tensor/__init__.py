"""Creating, joining, splitting, reducing, multiplying and indexing tensors."""

from typing import TYPE_CHECKING

from ....base import missing

if TYPE_CHECKING:
    from .arithmetic import *  # noqa: F403  # noqa: F403
    from .constants import *  # noqa: F403
    from .indexing import *  # noqa: F403  # noqa: F403
    from .joining import *  # noqa: F403
    from .matrix import *  # noqa: F403
    from .random import *  # noqa: F403
    from .shapes import *  # noqa: F403
    from .variables import *  # noqa: F403
    from .variables import load_combine as load_combine
    from .variables import save as save
    from .variables import save_combine as save_combine
else:
    __all__ = missing.public(__name__)

__getattr__, __dir__ = missing.lazy(__name__)
