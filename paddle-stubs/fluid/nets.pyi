# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid import (
    layers as layers,
)
from fluidlite.fluid.data_feeder import (
    check_variable_and_dtype as check_variable_and_dtype,
    convert_dtype as convert_dtype,
)
from fluidlite.fluid.nets import (
    glu as glu,
    img_conv_group as img_conv_group,
    scaled_dot_product_attention as scaled_dot_product_attention,
    sequence_conv_pool as sequence_conv_pool,
    simple_img_conv_pool as simple_img_conv_pool,
)
