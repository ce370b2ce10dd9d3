# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.input import (
    embedding as embedding,
)
from fluidlite.layers.loss.sampled import (
    nce as nce,
)
from fluidlite.layers.nn.activations import (
    prelu as prelu,
)
from fluidlite.layers.nn.normalization import batch_norm as batch_norm
from fluidlite.layers.nn.convolution import (
    conv2d as conv2d,
    conv2d_transpose as conv2d_transpose,
    conv3d as conv3d,
    conv3d_transpose as conv3d_transpose,
)
from fluidlite.layers.nn.normalization import (
    group_norm as group_norm,
    instance_norm as instance_norm,
    layer_norm as layer_norm,
    spectral_norm as spectral_norm,
)
from fluidlite.layers.recurrent.sequences import row_conv as row_conv
from fluidlite.layers.tensor.matrix import (
    bilinear_tensor_product as bilinear_tensor_product,
)
from fluidlite.layers.tensor.variables import (
    create_parameter as create_parameter,
)
from fluidlite.paddle.static.nn import (
    fc as fc,
)
