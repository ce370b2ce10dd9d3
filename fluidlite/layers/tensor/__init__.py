"""Making, joining, parting, reducing, multiplying and indexing tensors."""

from ...base import missing
from . import (
    arithmetic,
    comparison,
    constants,
    indexing,
    joining,
    lod,
    manipulation,
    matrix,
    random,
    reductions,
    search,
    selected_rows,
    shapes,
    slicing,
    tensor_math,
    variables,
)
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

__all__ = []
__all__ += arithmetic.__all__
__all__ += comparison.__all__
__all__ += constants.__all__
__all__ += indexing.__all__
__all__ += joining.__all__
__all__ += lod.__all__
__all__ += manipulation.__all__
__all__ += matrix.__all__
__all__ += random.__all__
__all__ += reductions.__all__
__all__ += search.__all__
__all__ += selected_rows.__all__
__all__ += shapes.__all__
__all__ += slicing.__all__
__all__ += tensor_math.__all__
__all__ += variables.__all__

__getattr__ = missing.reporter(__name__)
