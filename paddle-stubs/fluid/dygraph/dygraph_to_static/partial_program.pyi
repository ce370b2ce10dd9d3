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
from fluidlite.fluid.dygraph.dygraph_to_static.partial_program import (
    PartialProgramLayer as PartialProgramLayer,
    partial_program_from as partial_program_from,
    valid_vars as valid_vars,
)
from fluidlite.paddle import (
    compat as cpt,
)
