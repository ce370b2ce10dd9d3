"""Recurrent networks, decoding, beam search (`fluid.layers.rnn` and more)."""

from typing import TYPE_CHECKING

from ....base import missing

if TYPE_CHECKING:
    from .beams import *  # noqa: F403
    from .cells import *  # noqa: F403
    from .decoding import *  # noqa: F403
    from .sequences import *  # noqa: F403
else:
    __all__ = missing.public(__name__)

__getattr__, __dir__ = missing.lazy(__name__)
