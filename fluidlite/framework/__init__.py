"""The graph: programs, blocks, operators, variables, and transformations of them; nothing here executes.

Follows `fluid.framework`.
"""

from typing import TYPE_CHECKING

from ..base import missing
from ..base.dtypes import VarType
from ..base.dtypes import to_vartype as convert_np_dtype_to_dtype_
from ..base.fluid_flags import get_flags, set_flags
from ..base.place import (
    CPUPlace,
    CUDAPinnedPlace,
    CUDAPlace,
    cpu_places,
    cuda_pinned_places,
    cuda_places,
    is_compiled_with_cuda,
)
from ..ops.registry import grad_name as grad_var_name
from .block import Block
from .common_attrs import NameScope, OpRole, device_guard, name_scope, switch_device
from .common_attrs import _full_name_scope as _full_name_scope
from .mode import _current_expected_place as _current_expected_place
from .mode import _dygraph_guard as _dygraph_guard
from .mode import _dygraph_place_guard as _dygraph_place_guard
from .mode import _dygraph_tracer as _dygraph_tracer
from .mode import dygraph_not_support, dygraph_only, fake_interface_only, in_dygraph_mode
from .names import (
    CONTROL_DEP_VAR_PREFIX,
    EMPTY_VAR_NAME,
    GRAD_VAR_SUFFIX,
    TEMP_VAR_NAME,
    ZERO_VAR_SUFFIX,
    dtype_is_floating,
    generate_control_dev_var_name,
)
from .names import _debug_string_ as _debug_string_
from .names import _get_var as _get_var
from .operator import Operator
from .program import (
    Program,
    default_main_program,
    default_startup_program,
    program_guard,
    switch_main_program,
    switch_startup_program,
)
from .variable import ComplexVariable, Parameter, Variable

if TYPE_CHECKING:
    from ..base.version import require_version
    from .serialization.ir_graph import IrGraph, IrNode, IrOpNode, IrVarNode
    from .serialization.op_protos import OpProtoHolder, get_all_op_protos

global_prog_seed = 0
"""The seed of programs that are made from now on; scripts set it here, or by `Program.global_seed`."""

VariableMetaClass = ParameterMetaClass = type(Variable)

__all__ = [
    "CONTROL_DEP_VAR_PREFIX",
    "EMPTY_VAR_NAME",
    "GRAD_VAR_SUFFIX",
    "TEMP_VAR_NAME",
    "ZERO_VAR_SUFFIX",
    "Block",
    "CPUPlace",
    "CUDAPinnedPlace",
    "CUDAPlace",
    "NameScope",
    "OpProtoHolder",
    "ComplexVariable",
    "OpRole",
    "IrGraph",
    "IrNode",
    "IrOpNode",
    "IrVarNode",
    "Operator",
    "Parameter",
    "ParameterMetaClass",
    "Program",
    "VarType",
    "Variable",
    "VariableMetaClass",
    "convert_np_dtype_to_dtype_",
    "cpu_places",
    "cuda_pinned_places",
    "cuda_places",
    "default_main_program",
    "default_startup_program",
    "device_guard",
    "dtype_is_floating",
    "generate_control_dev_var_name",
    "get_all_op_protos",
    "get_flags",
    "dygraph_not_support",
    "dygraph_only",
    "fake_interface_only",
    "global_prog_seed",
    "grad_var_name",
    "in_dygraph_mode",
    "is_compiled_with_cuda",
    "name_scope",
    "program_guard",
    "require_version",
    "set_flags",
    "switch_device",
    "switch_main_program",
    "switch_startup_program",
]

__getattr__, __dir__ = missing.lazy(__name__)
