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
    cuda_places as cuda_places,
)
from fluidlite.dygraph import (
    nn as nn,
)
from fluidlite.initializer import (
    ConstantInitializer as Constant,
)
from fluidlite.install_check import (
    Layer as Layer,
    Program as Program,
    SimpleLayer as SimpleLayer,
    cpu_places as cpu_places,
    program_guard as program_guard,
    run_check as run_check,
)
from fluidlite.param_attr import (
    ParamAttr as ParamAttr,
)
