# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    framework as framework,
)
from fluidlite.fluid import (
    core as core,
)
from fluidlite.fluid.small_modules import (
    find_distributed_lookup_table as find_distributed_lookup_table,
)
from fluidlite.fluid.transpiler.details import (
    PSDispatcher as PSDispatcher,
    RoundRobin as RoundRobin,
    delete_ops as delete_ops,
)
from fluidlite.fluid.transpiler.distribute_transpiler import (
    ServerRuntimeConfig as ServerRuntimeConfig,
)
from fluidlite.fluid.transpiler.geo_sgd_transpiler import (
    Block as Block,
    DistributeTranspiler as DistributeTranspiler,
    DistributeTranspilerConfig as DistributeTranspilerConfig,
    DistributedMode as DistributedMode,
    GeoSgdTranspiler as GeoSgdTranspiler,
    Program as Program,
    RPC_OP_ROLE_ATTR_NAME as RPC_OP_ROLE_ATTR_NAME,
    RPC_OP_ROLE_ATTR_VALUE as RPC_OP_ROLE_ATTR_VALUE,
    VarsDistributed as VarsDistributed,
    default_main_program as default_main_program,
    default_startup_program as default_startup_program,
    op_role_attr_name as op_role_attr_name,
    slice_variable as slice_variable,
    wait_server_ready as wait_server_ready,
)
from fluidlite.fluid.transpiler.parameter_server.trainer import (
    same_or_split_var as same_or_split_var,
)
from fluidlite.framework.variable import (
    Parameter as Parameter,
)
