# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.paddle.vision import (
    BrightnessTransform as BrightnessTransform,
    ColorJitter as ColorJitter,
    ContrastTransform as ContrastTransform,
    HueTransform as HueTransform,
    SaturationTransform as SaturationTransform,
)
