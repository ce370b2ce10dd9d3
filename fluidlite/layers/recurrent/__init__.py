"""Recurrent networks, decoding, beam search (`fluid.layers.rnn` and more)."""

from ...base import missing
from . import beams, cells, decode_helpers, decoding, sequences, unit
from .beams import *  # noqa: F403
from .cells import *  # noqa: F403
from .decode_helpers import *  # noqa: F403
from .decoding import *  # noqa: F403
from .sequences import *  # noqa: F403
from .unit import *  # noqa: F403

__all__ = []
__all__ += beams.__all__
__all__ += cells.__all__
__all__ += decode_helpers.__all__
__all__ += decoding.__all__
__all__ += sequences.__all__
__all__ += unit.__all__

__getattr__ = missing.reporter(__name__)
