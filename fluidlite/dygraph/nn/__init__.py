"""Layers with parameters (`fluid.dygraph.nn`)."""

from ...base import missing
from .activation import PRelu
from .convolution import Conv2D, Conv2DTranspose, Conv3D, Conv3DTranspose
from .dropout import Dropout
from .embedding import NCE, Embedding
from .linear import BilinearTensorProduct, Linear
from .loss import BCELoss, L1Loss, MSELoss, NLLLoss
from .normalization import BatchNorm, GroupNorm, InstanceNorm, LayerNorm, SpectralNorm
from .pooling import Pool2D
from .recurrent import GRUUnit
from .sequence import RowConv, SequenceConv
from .tree import TreeConv

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

__getattr__ = missing.reporter(__name__)
