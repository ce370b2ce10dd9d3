"""The graph: programs, blocks, operators, variables, and what is done to them without running anything.

Follows `fluid.framework`.
"""

from ..base import missing
from ..base.dtypes import VarType
from ..base.dtypes import to_vartype as convert_np_dtype_to_dtype_
from ..base.place import (
    CPUPlace,
    CUDAPinnedPlace,
    CUDAPlace,
    cpu_places,
    cuda_pinned_places,
    cuda_places,
    is_compiled_with_cuda,
)
from ..base.version import require_version
from ..ops.registry import grad_name as grad_var_name
from .block import Block
from .mode import _current_expected_place as _current_expected_place
from .mode import in_dygraph_mode
from .operator import Operator, OpRole
from .program import (
    Program,
    default_main_program,
    default_startup_program,
    name_scope,
    program_guard,
    switch_main_program,
    switch_startup_program,
)
from .variable import Parameter, Variable

__all__ = [
    "Block",
    "CPUPlace",
    "CUDAPinnedPlace",
    "CUDAPlace",
    "OpRole",
    "Operator",
    "Parameter",
    "Program",
    "VarType",
    "Variable",
    "convert_np_dtype_to_dtype_",
    "cpu_places",
    "cuda_pinned_places",
    "cuda_places",
    "default_main_program",
    "default_startup_program",
    "grad_var_name",
    "in_dygraph_mode",
    "is_compiled_with_cuda",
    "name_scope",
    "program_guard",
    "require_version",
    "switch_main_program",
    "switch_startup_program",
]

__getattr__ = missing.reporter(__name__)
