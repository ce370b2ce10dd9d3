"""Numbers of few bits: quantising, also in training, and back."""

from . import dequantize, fake_quantize, integers  # noqa: F401
