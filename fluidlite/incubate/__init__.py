"""`fluid.incubate`: training with several processes, and what writes the lines that data sets of files read."""

from ..base import missing
from . import data_generator

__all__ = ["data_generator", "fleet"]

__getattr__ = missing.reporter(__name__, lazy={"fleet": ""})
