"""`fluid.contrib.extend_optimizer`: optimizers with decoupled weight decay."""

from ...base import missing
from . import extend_optimizer_with_weight_decay
from .extend_optimizer_with_weight_decay import extend_with_decoupled_weight_decay

__all__ = ["extend_optimizer_with_weight_decay", "extend_with_decoupled_weight_decay"]

__getattr__ = missing.reporter(__name__)
