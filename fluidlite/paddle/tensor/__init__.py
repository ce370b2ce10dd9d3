"""Functions of tensors (`paddle.tensor`): each topic in a module of its own."""

from . import creation, linalg, logic, manipulation, math, random, search, stat, summation
from .creation import *  # noqa: F403
from .linalg import *  # noqa: F403
from .logic import *  # noqa: F403
from .manipulation import *  # noqa: F403
from .math import *  # noqa: F403
from .random import *  # noqa: F403
from .search import *  # noqa: F403
from .stat import *  # noqa: F403
from .summation import *  # noqa: F403

__all__ = []
__all__ += creation.__all__
__all__ += linalg.__all__
__all__ += logic.__all__
__all__ += manipulation.__all__
__all__ += math.__all__
__all__ += random.__all__
__all__ += search.__all__
__all__ += stat.__all__
__all__ += summation.__all__
