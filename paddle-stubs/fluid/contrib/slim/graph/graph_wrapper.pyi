# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.executor import (
    Executor as Executor,
)
from fluidlite.fluid import (
    compiler as compiler,
    io as io,
)
from fluidlite.fluid.contrib.slim.graph import (
    GraphWrapper as GraphWrapper,
    OPTIMIZER_OPS as OPTIMIZER_OPS,
    OpWrapper as OpWrapper,
    VarWrapper as VarWrapper,
)
from fluidlite.fluid.io.inference import (
    load_inference_model as load_inference_model,
    save_inference_model as save_inference_model,
)
from fluidlite.fluid.io.saving import (
    save_persistables as save_persistables,
)
from fluidlite.framework import (
    Parameter as Parameter,
    Program as Program,
    Variable as Variable,
    program_guard as program_guard,
)
