# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    core as core,
    unique_name as unique_name,
)
from fluidlite.base.dtypes import (
    VarType as VarType,
    to_vartype as convert_np_dtype_to_dtype_,
)
from fluidlite.base.fluid_flags import (
    get_flags as get_flags,
    set_flags as set_flags,
)
from fluidlite.base.place import (
    CPUPlace as CPUPlace,
    CUDAPinnedPlace as CUDAPinnedPlace,
    CUDAPlace as CUDAPlace,
    cpu_places as cpu_places,
    cuda_pinned_places as cuda_pinned_places,
    cuda_places as cuda_places,
    is_compiled_with_cuda as is_compiled_with_cuda,
)
from fluidlite.framework import (
    CONTROL_DEP_VAR_PREFIX as CONTROL_DEP_VAR_PREFIX,
    EMPTY_VAR_NAME as EMPTY_VAR_NAME,
    GRAD_VAR_SUFFIX as GRAD_VAR_SUFFIX,
    IrGraph as IrGraph,
    IrNode as IrNode,
    IrOpNode as IrOpNode,
    IrVarNode as IrVarNode,
    OpProtoHolder as OpProtoHolder,
    ParamBase as ParamBase,
    TEMP_VAR_NAME as TEMP_VAR_NAME,
    ZERO_VAR_SUFFIX as ZERO_VAR_SUFFIX,
    get_all_op_protos as get_all_op_protos,
    global_prog_seed as global_prog_seed,
    require_version as require_version,
    signature_safe_contextmanager as signature_safe_contextmanager,
)
from fluidlite.framework.block import (
    Block as Block,
)
from fluidlite.framework.complex_variable import (
    ComplexVariable as ComplexVariable,
)
from fluidlite.framework.devices import (
    device_guard as device_guard,
    switch_device as switch_device,
)
from fluidlite.framework.mode import (
    in_dygraph_mode as in_dygraph_mode,
)
from fluidlite.framework.mode_switches import (
    dygraph_not_support as dygraph_not_support,
    dygraph_only as dygraph_only,
    fake_interface_only as fake_interface_only,
)
from fluidlite.framework.name_scopes import (
    NameScope as NameScope,
    name_scope as name_scope,
)
from fluidlite.framework.names import (
    dtype_is_floating as dtype_is_floating,
    generate_control_dev_var_name as generate_control_dev_var_name,
)
from fluidlite.framework.operator import (
    OpRole as OpRole,
    Operator as Operator,
)
from fluidlite.framework.program import (
    Program as Program,
    default_main_program as default_main_program,
    default_startup_program as default_startup_program,
    program_guard as program_guard,
    switch_main_program as switch_main_program,
    switch_startup_program as switch_startup_program,
)
from fluidlite.framework.variable import (
    Parameter as Parameter,
    _VariableKind as ParameterMetaClass,
    Variable as Variable,
    _VariableKind as VariableMetaClass,
)
from fluidlite.ops.op_view import (
    grad_name as grad_var_name,
)
from fluidlite.paddle import (
    compat as cpt,
    version as fluid_version,
)
from fluidlite.wrapped_decorator import (
    wrap_decorator as wrap_decorator,
)
