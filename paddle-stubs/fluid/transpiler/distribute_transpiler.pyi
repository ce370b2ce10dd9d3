# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    framework as framework,
)
from fluidlite.fluid import (
    core as core,
    initializer as initializer,
    unique_name as unique_name,
)
from fluidlite.fluid.small_modules import (
    find_distributed_lookup_table as find_distributed_lookup_table,
)
from fluidlite.fluid.transpiler import (
    collective as collective,
)
from fluidlite.fluid.transpiler.details import (
    UnionFind as UnionFind,
    find_op_by_output_arg as find_op_by_output_arg,
)
from fluidlite.fluid.transpiler.distribute_transpiler import (
    CLIP_OP_NAME_SCOPE as CLIP_OP_NAME_SCOPE,
    DIST_OP_ROLE_ATTR_VALUE as DIST_OP_ROLE_ATTR_VALUE,
    DistributeTranspiler as DistributeTranspiler,
    DistributeTranspilerConfig as DistributeTranspilerConfig,
    DistributedMode as DistributedMode,
    LOOKUP_TABLE_GRAD_TYPE as LOOKUP_TABLE_GRAD_TYPE,
    LOOKUP_TABLE_TYPE as LOOKUP_TABLE_TYPE,
    LR_SCHED_OP_ROLE_ATTR_VALUE as LR_SCHED_OP_ROLE_ATTR_VALUE,
    OPT_OP_ROLE_ATTR_VALUE as OPT_OP_ROLE_ATTR_VALUE,
    OP_NAME_SCOPE as OP_NAME_SCOPE,
    OP_ROLE_VAR_ATTR_NAME as OP_ROLE_VAR_ATTR_NAME,
    PRINT_LOG as PRINT_LOG,
    PSDispatcher as PSDispatcher,
    Program as Program,
    RPC_OP_ROLE_ATTR_NAME as RPC_OP_ROLE_ATTR_NAME,
    RPC_OP_ROLE_ATTR_VALUE as RPC_OP_ROLE_ATTR_VALUE,
    RoundRobin as RoundRobin,
    ServerRuntimeConfig as ServerRuntimeConfig,
    VarBlock as VarBlock,
    VarStruct as VarStruct,
    VarsDistributed as VarsDistributed,
    default_main_program as default_main_program,
    default_startup_program as default_startup_program,
    delete_ops as delete_ops,
    log as log,
    op_role_attr_name as op_role_attr_name,
    same_or_split_var as same_or_split_var,
    slice_variable as slice_variable,
    wait_server_ready as wait_server_ready,
)
from fluidlite.framework.block import (
    Block as Block,
)
from fluidlite.framework.variable import (
    Parameter as Parameter,
)
from fluidlite.ops.op_view import (
    grad_name as grad_var_name,
)
