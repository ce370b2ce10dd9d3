# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid.incubate.fleet.base.role_maker import (
    GeneralRoleMaker as GeneralRoleMaker,
    MPIRoleMaker as MPIRoleMaker,
    MPISymetricRoleMaker as MPISymetricRoleMaker,
    MockBarrier as MockBarrier,
    PaddleCloudRoleMaker as PaddleCloudRoleMaker,
    Role as Role,
    RoleMakerBase as RoleMakerBase,
    UserDefinedCollectiveRoleMaker as UserDefinedCollectiveRoleMaker,
    UserDefinedRoleMaker as UserDefinedRoleMaker,
)
