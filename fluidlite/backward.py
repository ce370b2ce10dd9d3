"""`fluid.backward`: the public names of `framework.backward`."""

from .framework.backward import append_backward, gradients

__all__ = ["append_backward", "gradients"]
