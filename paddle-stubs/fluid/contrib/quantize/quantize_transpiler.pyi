# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.executor.scope import (
    global_scope as global_scope,
)
from fluidlite.fluid import (
    core as core,
    unique_name as unique_name,
)
from fluidlite.fluid.contrib.quantize import (
    QuantizeTranspiler as QuantizeTranspiler,
    quant as quant,
)
from fluidlite.fluid.initializer import (
    ConstantInitializer as Constant,
)
from fluidlite.fluid.layer_helper import (
    LayerHelper as LayerHelper,
)
from fluidlite.fluid.layers.control_flow.arrays import (
    autoincreased_step_counter as autoincreased_step_counter,
)
from fluidlite.fluid.param_attr import (
    ParamAttr as ParamAttr,
)
from fluidlite.framework.program import (
    default_main_program as default_main_program,
    default_startup_program as default_startup_program,
    program_guard as program_guard,
)
from fluidlite.framework.variable import (
    Variable as Variable,
)
