# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    unique_name as unique_name,
)
from fluidlite.annotations import (
    deprecated as deprecated,
)
from fluidlite.layer_helper import (
    LayerHelper as LayerHelper,
)
from fluidlite.layers.device import (
    get_places as get_places,
)
from fluidlite.layers.layer_function_generator import (
    autodoc as autodoc,
)
