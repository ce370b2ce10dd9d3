# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from . import (
    checkport as checkport,
    program_utils as program_utils,
    ufind as ufind,
    vars_distributed as vars_distributed,
)
from fluidlite import (
    paddle as paddle,
)
from fluidlite.fluid import (
    core as core,
)
from fluidlite.fluid.transpiler.details import (
    UnionFind as UnionFind,
    VarDistributed as VarDistributed,
    VarStruct as VarStruct,
    Variable as Variable,
    VarsDistributed as VarsDistributed,
    block_to_code as block_to_code,
    delete_ops as delete_ops,
    find_op_by_input_arg as find_op_by_input_arg,
    find_op_by_output_arg as find_op_by_output_arg,
    get_indent_space as get_indent_space,
    op_to_code as op_to_code,
    program_to_code as program_to_code,
    string_types as string_types,
    variable_to_code as variable_to_code,
    wait_server_ready as wait_server_ready,
)
