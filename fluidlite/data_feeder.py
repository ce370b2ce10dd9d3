"""`fluid.data_feeder`: the public name of `reader.feeder`."""

from .base import missing
from .reader.feeder import DataFeeder

__all__ = ["DataFeeder"]

__getattr__ = missing.reporter(__name__)
