# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    core as core,
    unique_name as unique_name,
)
from fluidlite.contrib.quantize.quantize_transpiler import (
    Constant as Constant,
    LayerHelper as LayerHelper,
    ParamAttr as ParamAttr,
    QuantizeTranspiler as QuantizeTranspiler,
    Variable as Variable,
    autoincreased_step_counter as autoincreased_step_counter,
    default_main_program as default_main_program,
    default_startup_program as default_startup_program,
    global_scope as global_scope,
    program_guard as program_guard,
    quant as quant,
)
