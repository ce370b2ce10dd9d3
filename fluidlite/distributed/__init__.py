"""Training with several processes: ranks, collective communication, launching.

Under this name Fluid has its first parameter servers, whose modules are not here.
"""

from ..base import missing
from .communicator import Alone, Communicator, DistributedError, RankLost
from .environment import Trainer, trainer
from .processes import world

__all__ = [
    "Alone",
    "Communicator",
    "DistributedError",
    "RankLost",
    "Trainer",
    "trainer",
    "world",
]

__getattr__ = missing.reporter(__name__)
