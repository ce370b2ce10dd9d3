# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    framework as framework,
)
from fluidlite.fluid import (
    backward as backward,
    core as core,
)
from fluidlite.fluid.dygraph import (
    layers as layers,
)
from fluidlite.fluid.dygraph.base import (
    _switch_to_static_graph_ as switch_to_static_graph,
)
from fluidlite.fluid.dygraph.jit.models import (
    StaticModelRunner as StaticModelRunner,
)
from fluidlite.fluid.layers import (
    nn as nn,
)
from fluidlite.paddle import (
    compat as cpt,
)
