# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid import (
    unique_name as unique_name,
)
from fluidlite.fluid.layers.collective import (
    LayerHelper as LayerHelper,
    Variable as Variable,
)
