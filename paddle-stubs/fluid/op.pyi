# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid import (
    core as core,
)
from fluidlite.fluid.op import (
    OpDescCreationMethod as OpDescCreationMethod,
    OpInfo as OpInfo,
    Operator as Operator,
    OperatorFactory as OperatorFactory,
    create_op_creation_method as create_op_creation_method,
    get_all_op_protos as get_all_op_protos,
    is_str as is_str,
)
