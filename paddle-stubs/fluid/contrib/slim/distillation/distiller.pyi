# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.executor.executor import (
    Executor as Executor,
)
from fluidlite.fluid import (
    layers as layers,
    optimizer as optimizer,
    regularizer as regularizer,
)
from fluidlite.fluid.contrib.slim.distillation import (
    FSPDistiller as FSPDistiller,
    FSPDistillerPass as FSPDistillerPass,
    L2Distiller as L2Distiller,
    L2DistillerPass as L2DistillerPass,
    SoftLabelDistiller as SoftLabelDistiller,
    SoftLabelDistillerPass as SoftLabelDistillerPass,
)
from fluidlite.framework import (
    program_guard as program_guard,
)
from fluidlite.framework.program import (
    Program as Program,
)
