"""Losses as layers: `loss = layer(input, label)`."""

from __future__ import annotations

from typing import Any

from .. import functional as F
from .base import FunctionLayer, layer_of

__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "CosineEmbeddingLoss",
    "CrossEntropyLoss",
    "HingeEmbeddingLoss",
    "KLDivLoss",
    "L1Loss",
    "MSELoss",
    "MarginRankingLoss",
    "NLLLoss",
    "SmoothL1Loss",
    "TripletMarginLoss",
]


def _loss(name: str, function: Any, inputs: int = 2) -> type[FunctionLayer]:
    return layer_of(name, function, __name__, inputs)


BCELoss = _loss("BCELoss", F.binary_cross_entropy)
BCEWithLogitsLoss = _loss("BCEWithLogitsLoss", F.binary_cross_entropy_with_logits)
CosineEmbeddingLoss = _loss("CosineEmbeddingLoss", F.cosine_embedding_loss, 3)
CrossEntropyLoss = _loss("CrossEntropyLoss", F.cross_entropy)
HingeEmbeddingLoss = _loss("HingeEmbeddingLoss", F.hinge_embedding_loss)
KLDivLoss = _loss("KLDivLoss", F.kl_div)
L1Loss = _loss("L1Loss", F.l1_loss)
MSELoss = _loss("MSELoss", F.mse_loss)
MarginRankingLoss = _loss("MarginRankingLoss", F.margin_ranking_loss, 3)
NLLLoss = _loss("NLLLoss", F.nll_loss)
SmoothL1Loss = _loss("SmoothL1Loss", F.smooth_l1_loss)
TripletMarginLoss = _loss("TripletMarginLoss", F.triplet_margin_loss, 3)
