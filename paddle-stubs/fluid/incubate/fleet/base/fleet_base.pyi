# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.contrib.mixed_precision.decorator import (
    OptimizerWithMixedPrecision as OptimizerWithMixedPrecision,
)
from fluidlite.incubate.fleet.base import (
    mode as mode,
)
from fluidlite.incubate.fleet.base.fleet_base import (
    DistributedOptimizer as DistributedOptimizer,
    Executor as Executor,
    Fleet as Fleet,
    MPISymetricRoleMaker as MPISymetricRoleMaker,
    Mode as Mode,
    RoleMakerBase as RoleMakerBase,
)
from fluidlite.incubate.fleet.base.role_maker import (
    UserDefinedRoleMaker as UserDefinedRoleMaker,
)
from fluidlite.optimizer.descent import (
    SGDOptimizer as SGD,
)
