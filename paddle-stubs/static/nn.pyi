# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.paddle.static.nn import (
    batch_norm as batch_norm,
    bilinear_tensor_product as bilinear_tensor_product,
    conv2d as conv2d,
    conv2d_transpose as conv2d_transpose,
    conv3d as conv3d,
    conv3d_transpose as conv3d_transpose,
    create_parameter as create_parameter,
    embedding as embedding,
    fc as fc,
    group_norm as group_norm,
    instance_norm as instance_norm,
    layer_norm as layer_norm,
    nce as nce,
    prelu as prelu,
    row_conv as row_conv,
    spectral_norm as spectral_norm,
)
