"""`fluid.contrib.slim.searcher`: looking for good combinations of choices."""

from ....base import missing
from . import controller
from .controller import EvolutionaryController, SAController

__all__ = ["EvolutionaryController", "SAController", "controller"]

__getattr__ = missing.reporter(__name__)
