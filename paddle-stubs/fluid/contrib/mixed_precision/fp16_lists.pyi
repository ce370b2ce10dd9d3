# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid.contrib.mixed_precision import (
    AutoMixedPrecisionLists as AutoMixedPrecisionLists,
    black_list as black_list,
    gray_list as gray_list,
    white_list as white_list,
)
