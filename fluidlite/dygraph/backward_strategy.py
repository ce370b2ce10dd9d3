"""`BackwardStrategy` (`fluid.dygraph.backward_strategy`)."""

from __future__ import annotations

from ..base import missing
from ..eager.tracer import BackwardStrategy

__all__ = ["BackwardStrategy"]

__getattr__ = missing.reporter(__name__)
