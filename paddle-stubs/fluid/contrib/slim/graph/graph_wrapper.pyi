# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    compiler as compiler,
    io as io,
)
from fluidlite.contrib.slim.graph import (
    GraphWrapper as GraphWrapper,
    OPTIMIZER_OPS as OPTIMIZER_OPS,
    OpWrapper as OpWrapper,
    VarWrapper as VarWrapper,
)
from fluidlite.executor import (
    Executor as Executor,
)
from fluidlite.framework import (
    Parameter as Parameter,
    Program as Program,
    Variable as Variable,
    program_guard as program_guard,
)
from fluidlite.io.inference import (
    load_inference_model as load_inference_model,
    save_inference_model as save_inference_model,
)
from fluidlite.io.saving import (
    save_persistables as save_persistables,
)
