"""Layers with parameters (`fluid.dygraph.nn`)."""

from .convolution import Conv2D, Conv2DTranspose, Conv3D, Conv3DTranspose, Pool2D, TreeConv
from .linear import NCE, BilinearTensorProduct, Dropout, Embedding, Linear, PRelu
from .loss import BCELoss, L1Loss, MSELoss, NLLLoss
from .normalization import BatchNorm, GroupNorm, InstanceNorm, LayerNorm, SpectralNorm
from .sequence import GRUUnit, RowConv, SequenceConv

__all__ = [
    "BCELoss",
    "BatchNorm",
    "BilinearTensorProduct",
    "Conv2D",
    "Conv2DTranspose",
    "Conv3D",
    "Conv3DTranspose",
    "Dropout",
    "Embedding",
    "GRUUnit",
    "GroupNorm",
    "InstanceNorm",
    "L1Loss",
    "LayerNorm",
    "Linear",
    "MSELoss",
    "NCE",
    "NLLLoss",
    "PRelu",
    "RowConv",
    "SequenceConv",
    "Pool2D",
    "SpectralNorm",
    "TreeConv",
]
