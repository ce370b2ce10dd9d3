# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    executor as executor,
)
from fluidlite.base.place import (
    cuda_places as cuda_places,
)
from fluidlite.fluid import (
    backward as backward,
    compiler as compiler,
    core as core,
    layers as layers,
    optimizer as optimizer,
    unique_name as unique_name,
)
from fluidlite.fluid.debugger import (
    Layer as Layer,
    Program as Program,
    SimpleLayer as SimpleLayer,
    cpu_places as cpu_places,
    program_guard as program_guard,
    run_check as run_check,
)
from fluidlite.fluid.dygraph import (
    nn as nn,
)
from fluidlite.fluid.initializer import (
    ConstantInitializer as Constant,
)
from fluidlite.fluid.param_attr import (
    ParamAttr as ParamAttr,
)
