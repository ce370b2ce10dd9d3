"""Several processes that work together: which one this is, what they say to each other, how they are started."""

from .communicator import Alone, Communicator, DistributedError, RankLost, is_parallel, world
from .environment import Trainer, trainer

__all__ = [
    "Alone",
    "Communicator",
    "DistributedError",
    "RankLost",
    "Trainer",
    "is_parallel",
    "trainer",
    "world",
]
