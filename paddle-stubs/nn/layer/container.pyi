# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.paddle.nn.layer.common import (
    LayerDict as LayerDict,
    LayerList as LayerList,
    ParameterList as ParameterList,
    Sequential as Sequential,
)
