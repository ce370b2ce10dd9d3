# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    paddle as paddle,
)
from fluidlite.base.dtypes import (
    VarType as VarType,
)
from fluidlite.fluid import (
    core as core,
)
from fluidlite.fluid.transpiler.details import (
    block_to_code as block_to_code,
    delete_ops as delete_ops,
    find_op_by_input_arg as find_op_by_input_arg,
    find_op_by_output_arg as find_op_by_output_arg,
    get_indent_space as get_indent_space,
    op_to_code as op_to_code,
    program_to_code as program_to_code,
    variable_to_code as variable_to_code,
)
from fluidlite.framework import (
    Block as Block,
    Operator as Operator,
    Parameter as Parameter,
    Program as Program,
    Variable as Variable,
)
