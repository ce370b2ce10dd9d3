"""Readers for trainers that share the work (`fluid.contrib.reader`)."""

from ...base import missing
from . import distributed_reader
from .distributed_reader import distributed_batch_reader

__all__ = ["distributed_batch_reader", "distributed_reader"]

__getattr__ = missing.reporter(__name__)
