"""`fluid.incubate`: what writes the lines that data sets of files read."""

from ..base import missing
from . import data_generator

__all__ = ["data_generator"]

__getattr__ = missing.reporter(__name__)
