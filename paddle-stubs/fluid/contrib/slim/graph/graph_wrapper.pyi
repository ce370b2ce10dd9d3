# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    compiler as compiler,
    io as io,
)
from fluidlite.contrib.slim.graph.graph_wrapper import (
    Executor as Executor,
    GraphWrapper as GraphWrapper,
    OPTIMIZER_OPS as OPTIMIZER_OPS,
    OpWrapper as OpWrapper,
    Parameter as Parameter,
    Program as Program,
    VarWrapper as VarWrapper,
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
