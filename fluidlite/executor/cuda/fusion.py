"""The fusion passes of plans for a GPU, in order."""

from __future__ import annotations

from ..passes.rewriting import Pass, fuse_pairs
from .batch_norm import normalized, normalized_grad
from .chains import join_chains
from .layers import layer, layer_grad
from .lookups import join_lookups
from .losses import loss, loss_grad
from .norms import Products, Squares
from .updates import Updates

PASSES: tuple[Pass, ...] = (
    fuse_pairs(loss_grad),
    fuse_pairs(loss),
    Squares.run,
    Products.run,
    join_lookups,
    fuse_pairs(layer_grad, normalized_grad),
    fuse_pairs(layer, normalized),
    Updates.run,
    join_chains,
)
