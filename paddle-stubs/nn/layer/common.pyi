# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.paddle.nn.layer.common import (
    AlphaDropout as AlphaDropout,
    Bilinear as Bilinear,
    CosineSimilarity as CosineSimilarity,
    Dropout as Dropout,
    Dropout2D as Dropout2D,
    Dropout3D as Dropout3D,
    Embedding as Embedding,
    Flatten as Flatten,
    Identity as Identity,
    LayerDict as LayerDict,
    LayerList as LayerList,
    Linear as Linear,
    Pad1D as Pad1D,
    Pad2D as Pad2D,
    Pad3D as Pad3D,
    PairwiseDistance as PairwiseDistance,
    ParameterList as ParameterList,
    PixelShuffle as PixelShuffle,
    Sequential as Sequential,
    Unfold as Unfold,
    Upsample as Upsample,
    UpsamplingBilinear2D as UpsamplingBilinear2D,
    UpsamplingNearest2D as UpsamplingNearest2D,
    ZeroPad2D as ZeroPad2D,
)
