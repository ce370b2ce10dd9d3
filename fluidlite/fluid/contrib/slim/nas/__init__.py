"""`fluid.contrib.slim.nas`: network architecture search, with one controller for several agents."""

from . import controller_server, light_nas_strategy, lock
from .controller_server import ControllerServer, SearchAgent, SearchSpace
from .light_nas_strategy import LightNASStrategy
from .lock import LOCK_EX, LOCK_UN

__all__ = [
    "LOCK_EX",
    "LOCK_UN",
    "ControllerServer",
    "LightNASStrategy",
    "SearchAgent",
    "SearchSpace",
    "controller_server",
    "light_nas_strategy",
    "lock",
    "search_agent",
    "search_space",
]
