# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from . import (
    decorator as decorator,
    fp16_lists as fp16_lists,
    fp16_utils as fp16_utils,
)
from fluidlite.fluid.contrib.mixed_precision import (
    AutoMixedPrecisionLists as AutoMixedPrecisionLists,
    decorate as decorate,
)
