# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid import (
    core as core,
    dygraph_utils as dygraph_utils,
    unique_name as unique_name,
)
from fluidlite.fluid.data_feeder import (
    check_dtype as check_dtype,
    check_type as check_type,
    check_variable_and_dtype as check_variable_and_dtype,
    convert_dtype as convert_dtype,
)
from fluidlite.fluid.dygraph import (
    layers as layers,
)
from fluidlite.fluid.dygraph.layers import (
    LayerObjectHelper as LayerObjectHelper,
)
from fluidlite.fluid.dygraph.nn import (
    BCELoss as BCELoss,
    BatchNorm as BatchNorm,
    BilinearTensorProduct as BilinearTensorProduct,
    Conv2D as Conv2D,
    Conv2DTranspose as Conv2DTranspose,
    Conv3D as Conv3D,
    Conv3DTranspose as Conv3DTranspose,
    Dropout as Dropout,
    Embedding as Embedding,
    GRUUnit as GRUUnit,
    GroupNorm as GroupNorm,
    InstanceNorm as InstanceNorm,
    L1Loss as L1Loss,
    LayerNorm as LayerNorm,
    Linear as Linear,
    MSELoss as MSELoss,
    NCE as NCE,
    NLLLoss as NLLLoss,
    PRelu as PRelu,
    Pool2D as Pool2D,
    RowConv as RowConv,
    SequenceConv as SequenceConv,
    SpectralNorm as SpectralNorm,
    TreeConv as TreeConv,
)
from fluidlite.fluid.initializer import (
    ConstantInitializer as Constant,
    NormalInitializer as Normal,
    NumpyArrayInitializer as NumpyArrayInitializer,
)
from fluidlite.fluid.layers import (
    nn as F,
    utils as utils,
)
from fluidlite.fluid.layers.loss.classification import (
    cross_entropy as cross_entropy,
)
from fluidlite.fluid.layers.ops import (
    square as square,
)
from fluidlite.fluid.param_attr import (
    ParamAttr as ParamAttr,
)
from fluidlite.framework.mode import (
    in_dygraph_mode as in_dygraph_mode,
)
from fluidlite.framework.program import (
    default_main_program as default_main_program,
)
from fluidlite.framework.serialization.op_protos import (
    OpProtoHolder as OpProtoHolder,
)
from fluidlite.framework.variable import (
    Parameter as Parameter,
    Variable as Variable,
)
