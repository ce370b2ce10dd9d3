# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.dygraph.container import (
    LayerList as LayerList,
    ParameterList as ParameterList,
    Sequential as Sequential,
)
from fluidlite.paddle.nn.layer.container import (
    LayerDict as LayerDict,
)
