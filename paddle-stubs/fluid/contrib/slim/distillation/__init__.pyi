# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from . import (
    distillation_strategy as distillation_strategy,
    distiller as distiller,
)
from fluidlite.contrib.slim.distillation.distillation_strategy import (
    DistillationStrategy as DistillationStrategy,
)
from fluidlite.contrib.slim.distillation.distiller import (
    FSPDistiller as FSPDistiller,
    L2Distiller as L2Distiller,
    SoftLabelDistiller as SoftLabelDistiller,
)
