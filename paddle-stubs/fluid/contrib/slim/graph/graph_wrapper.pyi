# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    compiler as compiler,
    io as io,
)
from fluidlite.contrib.slim.graph.graph_wrapper import (
    GraphWrapper as GraphWrapper,
    OPTIMIZER_OPS as OPTIMIZER_OPS,
    OpWrapper as OpWrapper,
    VarWrapper as VarWrapper,
)
from fluidlite.executor.running.executor import (
    Executor as Executor,
)
from fluidlite.framework.program import (
    Program as Program,
    program_guard as program_guard,
)
from fluidlite.framework.variable import (
    Parameter as Parameter,
    Variable as Variable,
)
from fluidlite.io.inference import (
    load_inference_model as load_inference_model,
    save_inference_model as save_inference_model,
)
from fluidlite.io.saving import (
    save_persistables as save_persistables,
)
