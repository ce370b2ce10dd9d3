# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    backward as backward,
    compiler as compiler,
    core as core,
    executor as executor,
    layers as layers,
    optimizer as optimizer,
    unique_name as unique_name,
)
from fluidlite.base.place import (
    cpu_places as cpu_places,
    cuda_places as cuda_places,
)
from fluidlite.dygraph import (
    nn as nn,
)
from fluidlite.dygraph.layers import (
    Layer as Layer,
)
from fluidlite.framework.program import (
    Program as Program,
    program_guard as program_guard,
)
from fluidlite.initializer import (
    ConstantInitializer as Constant,
)
from fluidlite.install_check import (
    SimpleLayer as SimpleLayer,
    run_check as run_check,
)
from fluidlite.param_attr import (
    ParamAttr as ParamAttr,
)
