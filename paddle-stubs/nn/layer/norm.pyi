# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.paddle.nn.layer.norm import (
    BatchNorm as BatchNorm,
    BatchNorm1D as BatchNorm1D,
    BatchNorm2D as BatchNorm2D,
    BatchNorm3D as BatchNorm3D,
    GroupNorm as GroupNorm,
    InstanceNorm1D as InstanceNorm1D,
    InstanceNorm2D as InstanceNorm2D,
    InstanceNorm3D as InstanceNorm3D,
    LayerNorm as LayerNorm,
    LocalResponseNorm as LocalResponseNorm,
    SpectralNorm as SpectralNorm,
    SyncBatchNorm as SyncBatchNorm,
)
