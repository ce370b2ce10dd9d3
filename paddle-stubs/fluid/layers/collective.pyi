# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    unique_name as unique_name,
)
from fluidlite.layers.collective import (
    LayerHelper as LayerHelper,
    Variable as Variable,
)
