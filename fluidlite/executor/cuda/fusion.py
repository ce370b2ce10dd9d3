"""The fusion passes of plans for a GPU, in order."""

from __future__ import annotations

from ..passes.rewriting import Pass, grown
from .batch_norm import normalized, normalized_grad
from .chains import join_chains
from .layers import layer, layer_grad
from .lookups import join_lookups
from .losses import loss, loss_grad
from .norms import Products, Squares
from .updates import Updates

PASSES: tuple[Pass, ...] = (
    grown(loss_grad),
    grown(loss),
    Squares.run,
    Products.run,
    join_lookups,
    grown(layer_grad, normalized_grad),
    grown(layer, normalized),
    Updates.run,
    join_chains,
)
