# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid import (
    core as core,
    layers as layers,
)
from fluidlite.fluid.contrib.mixed_precision import (
    AutoMixedPrecisionLists as AutoMixedPrecisionLists,
    black_list as black_list,
    find_op_index as find_op_index,
    find_true_post_op as find_true_post_op,
    find_true_prev_op as find_true_prev_op,
    gray_list as gray_list,
    rewrite_program as rewrite_program,
    update_loss_scaling as update_loss_scaling,
    update_role_var_grad as update_role_var_grad,
    white_list as white_list,
)
