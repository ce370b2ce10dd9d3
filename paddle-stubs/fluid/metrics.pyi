# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.base import (
    unique_name as unique_name,
)
from fluidlite.fluid import (
    layers as layers,
)
from fluidlite.fluid.initializer import (
    ConstantInitializer as Constant,
)
from fluidlite.fluid.layers import (
    detection as detection,
)
from fluidlite.fluid.metrics import (
    Accuracy as Accuracy,
    Auc as Auc,
    ChunkEvaluator as ChunkEvaluator,
    CompositeMetric as CompositeMetric,
    DetectionMAP as DetectionMAP,
    EditDistance as EditDistance,
    LayerHelper as LayerHelper,
    MetricBase as MetricBase,
    Precision as Precision,
    Program as Program,
    Recall as Recall,
    Variable as Variable,
    program_guard as program_guard,
)
