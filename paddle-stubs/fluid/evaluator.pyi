# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    layers as layers,
)
from fluidlite.base import (
    unique_name as unique_name,
)
from fluidlite.evaluator import (
    ChunkEvaluator as ChunkEvaluator,
    DetectionMAP as DetectionMAP,
    EditDistance as EditDistance,
    Evaluator as Evaluator,
)
from fluidlite.framework.program import (
    Program as Program,
    program_guard as program_guard,
)
from fluidlite.framework.variable import (
    Variable as Variable,
)
from fluidlite.initializer import (
    ConstantInitializer as Constant,
)
from fluidlite.layer_helper import (
    LayerHelper as LayerHelper,
)
from fluidlite.layers import (
    detection as detection,
)
