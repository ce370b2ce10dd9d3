# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    framework as framework,
)
from fluidlite.fluid import (
    core as core,
    unique_name as unique_name,
)
from fluidlite.fluid.data_feeder import (
    check_dtype as check_dtype,
    check_type as check_type,
    check_variable_and_dtype as check_variable_and_dtype,
)
from fluidlite.fluid.initializer import (
    Bilinear as Bilinear,
    BilinearInitializer as BilinearInitializer,
    Constant as Constant,
    ConstantInitializer as ConstantInitializer,
    Initializer as Initializer,
    MSRA as MSRA,
    MSRAInitializer as MSRAInitializer,
    Normal as Normal,
    NormalInitializer as NormalInitializer,
    NumpyArrayInitializer as NumpyArrayInitializer,
    TruncatedNormal as TruncatedNormal,
    TruncatedNormalInitializer as TruncatedNormalInitializer,
    Uniform as Uniform,
    UniformInitializer as UniformInitializer,
    Xavier as Xavier,
    XavierInitializer as XavierInitializer,
    signature_safe_contextmanager as signature_safe_contextmanager,
)
from fluidlite.framework.mode import (
    in_dygraph_mode as in_dygraph_mode,
)
from fluidlite.framework.serialization.descs import (
    VarDesc as VarDesc,
)
