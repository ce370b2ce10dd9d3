# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    backward as backward,
    core as core,
    framework as framework,
)
from fluidlite.dygraph import (
    layers as layers,
)
from fluidlite.dygraph.base import (
    _switch_to_static_graph_ as switch_to_static_graph,
)
from fluidlite.dygraph.static_runner import (
    StaticModelRunner as StaticModelRunner,
)
from fluidlite.layers import (
    nn as nn,
)
from fluidlite.paddle import (
    compat as cpt,
)
