# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid.contrib.mixed_precision import (
    OptimizerWithMixedPrecision as OptimizerWithMixedPrecision,
)
from fluidlite.fluid.incubate.fleet.base import (
    mode as mode,
)
from fluidlite.fluid.incubate.fleet.base.fleet_base import (
    DistributedOptimizer as DistributedOptimizer,
    Executor as Executor,
    Fleet as Fleet,
    MPISymetricRoleMaker as MPISymetricRoleMaker,
    Mode as Mode,
    RoleMakerBase as RoleMakerBase,
)
from fluidlite.fluid.incubate.fleet.base.role_maker import (
    UserDefinedRoleMaker as UserDefinedRoleMaker,
)
from fluidlite.fluid.optimizer.adaptive import (
    SGDOptimizer as SGD,
)
