# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.paddle.nn.layer.of_functions import (
    AdaptiveAvgPool1D as AdaptiveAvgPool1D,
    AdaptiveAvgPool2D as AdaptiveAvgPool2D,
    AdaptiveAvgPool3D as AdaptiveAvgPool3D,
    AdaptiveMaxPool1D as AdaptiveMaxPool1D,
    AdaptiveMaxPool2D as AdaptiveMaxPool2D,
    AdaptiveMaxPool3D as AdaptiveMaxPool3D,
    AvgPool1D as AvgPool1D,
    AvgPool2D as AvgPool2D,
    AvgPool3D as AvgPool3D,
    MaxPool1D as MaxPool1D,
    MaxPool2D as MaxPool2D,
    MaxPool3D as MaxPool3D,
)
