"""`fluid.contrib.slim.core`: strategies, their context, and the loop that calls them."""

from .....base import missing
from . import compressor, config
from .compressor import Compressor, Context
from .config import ConfigFactory, Strategy

__all__ = ["Compressor", "ConfigFactory", "Context", "Strategy", "compressor", "config", "strategy"]

__getattr__ = missing.reporter(__name__)
