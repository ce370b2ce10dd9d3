# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid.dygraph.container import (
    Layer as Layer,
    LayerList as LayerList,
    ParameterList as ParameterList,
    Sequential as Sequential,
)
from fluidlite.framework.variable import (
    Parameter as Parameter,
)
