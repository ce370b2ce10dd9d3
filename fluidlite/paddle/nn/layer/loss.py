"""Losses as layers: `loss = layer(input, label)`."""

from __future__ import annotations

from .. import functional as F
from .base import layers_of

_OF_TWO = {
    "BCELoss": F.binary_cross_entropy,
    "BCEWithLogitsLoss": F.binary_cross_entropy_with_logits,
    "CrossEntropyLoss": F.cross_entropy,
    "HingeEmbeddingLoss": F.hinge_embedding_loss,
    "KLDivLoss": F.kl_div,
    "L1Loss": F.l1_loss,
    "MSELoss": F.mse_loss,
    "NLLLoss": F.nll_loss,
    "SmoothL1Loss": F.smooth_l1_loss,
}
_OF_THREE = {
    "CosineEmbeddingLoss": F.cosine_embedding_loss,
    "MarginRankingLoss": F.margin_ranking_loss,
    "TripletMarginLoss": F.triplet_margin_loss,
}
"""Losses of two and of three tensors, and the functions that they are."""

globals().update(layers_of(_OF_TWO, __name__, 2))
globals().update(layers_of(_OF_THREE, __name__, 3))

__all__ = [*_OF_TWO, *_OF_THREE]
