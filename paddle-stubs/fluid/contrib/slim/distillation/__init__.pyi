# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from . import (
    distillation_strategy as distillation_strategy,
    distiller as distiller,
)
from fluidlite.fluid.contrib.slim.distillation import (
    DistillationStrategy as DistillationStrategy,
    FSPDistiller as FSPDistiller,
    L2Distiller as L2Distiller,
    SoftLabelDistiller as SoftLabelDistiller,
)
