# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.base import (
    unique_name as unique_name,
)
from fluidlite.fluid import (
    layers as layers,
)
from fluidlite.fluid.evaluator import (
    ChunkEvaluator as ChunkEvaluator,
    DetectionMAP as DetectionMAP,
    EditDistance as EditDistance,
    Evaluator as Evaluator,
    LayerHelper as LayerHelper,
    Program as Program,
    Variable as Variable,
    program_guard as program_guard,
)
from fluidlite.fluid.initializer import (
    ConstantInitializer as Constant,
)
from fluidlite.fluid.layers import (
    detection as detection,
)
