"""`fluid.data_feeder`: the public name of `reader.feeder`."""

from .reader.feeder import DataFeeder

__all__ = ["DataFeeder"]
