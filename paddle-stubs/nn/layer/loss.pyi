# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.paddle.nn.layer.of_functions import (
    BCELoss as BCELoss,
    BCEWithLogitsLoss as BCEWithLogitsLoss,
    CosineEmbeddingLoss as CosineEmbeddingLoss,
    CrossEntropyLoss as CrossEntropyLoss,
    HingeEmbeddingLoss as HingeEmbeddingLoss,
    KLDivLoss as KLDivLoss,
    L1Loss as L1Loss,
    MSELoss as MSELoss,
    MarginRankingLoss as MarginRankingLoss,
    NLLLoss as NLLLoss,
    SmoothL1Loss as SmoothL1Loss,
    TripletMarginLoss as TripletMarginLoss,
)
