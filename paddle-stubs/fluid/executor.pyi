# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.base.dtypes import (
    to_vartype as convert_np_dtype_to_dtype_,
)
from fluidlite.executor import (
    Executor as Executor,
    FetchHandler as FetchHandler,
    LoDTensor as LoDTensor,
    LoDTensorArray as LoDTensorArray,
    Scope as Scope,
    as_numpy as as_numpy,
    check_feed_shape_type as check_feed_shape_type,
    create_lod_tensor as create_lod_tensor,
    create_random_int_lodtensor as create_random_int_lodtensor,
    dimension_is_compatible_with as dimension_is_compatible_with,
    dtype_is_compatible_with as dtype_is_compatible_with,
    g_scope as g_scope,
    global_scope as global_scope,
    has_feed_operators as has_feed_operators,
    has_fetch_operators as has_fetch_operators,
    scope_guard as scope_guard,
    signature_safe_contextmanager as signature_safe_contextmanager,
)
from fluidlite.fluid import (
    compiler as compiler,
    core as core,
)
from fluidlite.fluid.data_feeder import (
    convert_dtype as convert_dtype,
)
from fluidlite.fluid.inference.config import (
    AnalysisConfig as InferAnalysisConfig,
    NativeConfig as InferNativeConfig,
)
from fluidlite.fluid.trainer_desc import (
    FetchHandlerMonitor as FetchHandlerMonitor,
    TrainerFactory as TrainerFactory,
)
from fluidlite.framework.operator import (
    Operator as Operator,
)
from fluidlite.framework.program import (
    Program as Program,
    default_main_program as default_main_program,
)
from fluidlite.framework.variable import (
    Variable as Variable,
)
from fluidlite.paddle import (
    compat as cpt,
)
