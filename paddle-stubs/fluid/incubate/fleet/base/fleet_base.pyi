# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.contrib.mixed_precision.decorator import (
    OptimizerWithMixedPrecision as OptimizerWithMixedPrecision,
)
from fluidlite.executor.running.executor import (
    Executor as Executor,
)
from fluidlite.incubate.fleet.base import (
    mode as mode,
)
from fluidlite.incubate.fleet.base.fleet_base import (
    DistributedOptimizer as DistributedOptimizer,
    Fleet as Fleet,
)
from fluidlite.incubate.fleet.base.mode import (
    Mode as Mode,
)
from fluidlite.incubate.fleet.base.role_maker import (
    MPISymetricRoleMaker as MPISymetricRoleMaker,
    RoleMakerBase as RoleMakerBase,
    UserDefinedRoleMaker as UserDefinedRoleMaker,
)
from fluidlite.optimizer.descent import (
    SGDOptimizer as SGD,
)
