# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid import (
    layers as layers,
    unique_name as unique_name,
)
from fluidlite.fluid.contrib.mixed_precision import (
    AutoMixedPrecisionLists as AutoMixedPrecisionLists,
    OptimizerWithMixedPrecision as OptimizerWithMixedPrecision,
    decorate as decorate,
    default_main_program as default_main_program,
    default_startup_program as default_startup_program,
    fp16_utils as fp16_utils,
    rewrite_program as rewrite_program,
    update_loss_scaling as update_loss_scaling,
    update_role_var_grad as update_role_var_grad,
)
