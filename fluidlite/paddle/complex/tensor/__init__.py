"""Arithmetic, sums, products and shapes of complex numbers (`paddle.complex.tensor`)."""

from ....base import missing
from . import linalg, manipulation, math
from .linalg import *  # noqa: F403
from .manipulation import *  # noqa: F403
from .math import *  # noqa: F403

__all__: list[str] = [*linalg.__all__, *manipulation.__all__, *math.__all__]

__getattr__ = missing.reporter(__name__)
