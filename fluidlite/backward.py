"""`fluid.backward`: the public names of `framework.backward`."""

from .base import missing
from .framework.backward import append_backward, gradients

__all__ = ["append_backward", "gradients"]

__getattr__ = missing.reporter(__name__)
