"""Creating, joining, splitting, reducing, multiplying and indexing tensors."""

from typing import TYPE_CHECKING

from ...base import missing

if TYPE_CHECKING:
    from .arithmetic import *  # noqa: F403
    from .comparison import *  # noqa: F403
    from .constants import *  # noqa: F403
    from .files import load_combine as load_combine
    from .files import save as save
    from .files import save_combine as save_combine
    from .indexing import *  # noqa: F403
    from .joining import *  # noqa: F403
    from .lod import *  # noqa: F403
    from .manipulation import *  # noqa: F403
    from .matrix import *  # noqa: F403
    from .random import *  # noqa: F403
    from .reductions import *  # noqa: F403
    from .search import *  # noqa: F403
    from .selected_rows import *  # noqa: F403
    from .shapes import *  # noqa: F403
    from .slicing import *  # noqa: F403
    from .tensor_math import *  # noqa: F403
    from .variables import *  # noqa: F403
else:
    __all__ = missing.public(__name__)

__getattr__, __dir__ = missing.lazy(__name__)
