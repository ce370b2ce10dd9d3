"""`fluid.lod_tensor`: constructors of tensors with sequences."""

from ..base import missing
from ..executor.lod_tensor import create_lod_tensor, create_random_int_lodtensor

__all__ = ["create_lod_tensor", "create_random_int_lodtensor"]

__getattr__ = missing.reporter(__name__)
