"""Recurrent networks, decoding, beam search (`fluid.layers.rnn` and more)."""

from typing import TYPE_CHECKING

from ...base import missing
from ...base.public_names import public_names
from .beams import *  # noqa: F403
from .cells import *  # noqa: F403
from .decode_helpers import *  # noqa: F403
from .decoding import *  # noqa: F403
from .sequences import *  # noqa: F403
from .unit import *  # noqa: F403

if not TYPE_CHECKING:
    __all__ = public_names(__name__)

__getattr__ = missing.reporter(__name__)
