# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid import (
    unique_name as unique_name,
)
from fluidlite.fluid.layers.layer_function_generator import (
    autodoc as autodoc,
)
from fluidlite.fluid.layers.utils import (
    LayerHelper as LayerHelper,
    deprecated as deprecated,
    get_places as get_places,
)
