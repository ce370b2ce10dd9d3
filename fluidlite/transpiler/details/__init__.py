"""Helpers of transpilers (`fluid.transpiler.details`)."""

from ...base import missing
from . import checkport, program_utils, ufind, vars_distributed
from .checkport import wait_server_ready
from .program_utils import (
    block_to_code,
    delete_ops,
    find_op_by_input_arg,
    find_op_by_output_arg,
    get_indent_space,
    op_to_code,
    program_to_code,
    variable_to_code,
)
from .ufind import UnionFind
from .vars_distributed import VarDistributed, VarsDistributed, VarStruct

string_types = (str,)

__all__ = [
    "UnionFind",
    "VarDistributed",
    "VarStruct",
    "VarsDistributed",
    "block_to_code",
    "checkport",
    "delete_ops",
    "find_op_by_input_arg",
    "find_op_by_output_arg",
    "get_indent_space",
    "op_to_code",
    "program_to_code",
    "program_utils",
    "string_types",
    "ufind",
    "variable_to_code",
    "vars_distributed",
    "wait_server_ready",
]

__getattr__ = missing.reporter(__name__)
