# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    core as core,
    unique_name as unique_name,
)
from fluidlite.contrib.quantize import (
    QuantizeTranspiler as QuantizeTranspiler,
    quant as quant,
)
from fluidlite.executor.tensors.scope import (
    global_scope as global_scope,
)
from fluidlite.framework.program import (
    default_main_program as default_main_program,
    default_startup_program as default_startup_program,
    program_guard as program_guard,
)
from fluidlite.framework.variable import (
    Variable as Variable,
)
from fluidlite.initializer import (
    ConstantInitializer as Constant,
)
from fluidlite.layer_helper import (
    LayerHelper as LayerHelper,
)
from fluidlite.layers.control_flow.arrays import (
    autoincreased_step_counter as autoincreased_step_counter,
)
from fluidlite.param_attr import (
    ParamAttr as ParamAttr,
)
