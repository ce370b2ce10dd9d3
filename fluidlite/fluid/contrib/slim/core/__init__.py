"""`fluid.contrib.slim.core`: strategies, their context, and the loop that calls them."""

from . import compressor, config
from .compressor import Compressor, Context
from .config import ConfigFactory, Strategy

__all__ = ["Compressor", "ConfigFactory", "Context", "Strategy", "compressor", "config", "strategy"]
