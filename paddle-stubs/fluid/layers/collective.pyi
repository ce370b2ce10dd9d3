# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    unique_name as unique_name,
)
from fluidlite.framework.variable import (
    Variable as Variable,
)
from fluidlite.layer_helper import (
    LayerHelper as LayerHelper,
)
