# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from . import (
    functional as functional,
    initializer as initializer,
    layer as layer,
    utils as utils,
)
from fluidlite.dygraph.container import (
    LayerList as LayerList,
    ParameterList as ParameterList,
    Sequential as Sequential,
)
from fluidlite.dygraph.layers import (
    Layer as Layer,
)
from fluidlite.dygraph.nn.normalization import (
    BatchNorm as BatchNorm,
    SpectralNorm as SpectralNorm,
)
from fluidlite.paddle.nn.layer.activation import (
    CELU as CELU,
    ELU as ELU,
    GELU as GELU,
    GLU as GLU,
    Hardshrink as Hardshrink,
    Hardsigmoid as Hardsigmoid,
    Hardswish as Hardswish,
    Hardtanh as Hardtanh,
    LeakyReLU as LeakyReLU,
    LogSigmoid as LogSigmoid,
    LogSoftmax as LogSoftmax,
    Maxout as Maxout,
    Mish as Mish,
    PReLU as PReLU,
    ReLU as ReLU,
    ReLU6 as ReLU6,
    SELU as SELU,
    Sigmoid as Sigmoid,
    Silu as Silu,
    Softmax as Softmax,
    Softplus as Softplus,
    Softshrink as Softshrink,
    Softsign as Softsign,
    Swish as Swish,
    Tanh as Tanh,
    Tanhshrink as Tanhshrink,
    ThresholdedReLU as ThresholdedReLU,
)
from fluidlite.paddle.nn.layer.common import (
    AlphaDropout as AlphaDropout,
    Bilinear as Bilinear,
    CosineSimilarity as CosineSimilarity,
    Dropout as Dropout,
    Dropout2D as Dropout2D,
    Dropout3D as Dropout3D,
    Embedding as Embedding,
    Flatten as Flatten,
    Identity as Identity,
    Linear as Linear,
    Pad1D as Pad1D,
    Pad2D as Pad2D,
    Pad3D as Pad3D,
    PairwiseDistance as PairwiseDistance,
    PixelShuffle as PixelShuffle,
    Unfold as Unfold,
    Upsample as Upsample,
    UpsamplingBilinear2D as UpsamplingBilinear2D,
    UpsamplingNearest2D as UpsamplingNearest2D,
    ZeroPad2D as ZeroPad2D,
)
from fluidlite.paddle.nn.layer.container import (
    LayerDict as LayerDict,
)
from fluidlite.paddle.nn.layer.conv import (
    Conv1D as Conv1D,
    Conv1DTranspose as Conv1DTranspose,
    Conv2D as Conv2D,
    Conv2DTranspose as Conv2DTranspose,
    Conv3D as Conv3D,
    Conv3DTranspose as Conv3DTranspose,
)
from fluidlite.paddle.nn.layer.loss import (
    BCELoss as BCELoss,
    BCEWithLogitsLoss as BCEWithLogitsLoss,
    CosineEmbeddingLoss as CosineEmbeddingLoss,
    CrossEntropyLoss as CrossEntropyLoss,
    HingeEmbeddingLoss as HingeEmbeddingLoss,
    KLDivLoss as KLDivLoss,
    L1Loss as L1Loss,
    MSELoss as MSELoss,
    MarginRankingLoss as MarginRankingLoss,
    NLLLoss as NLLLoss,
    SmoothL1Loss as SmoothL1Loss,
    TripletMarginLoss as TripletMarginLoss,
)
from fluidlite.paddle.nn.layer.norm import (
    BatchNorm1D as BatchNorm1D,
    BatchNorm2D as BatchNorm2D,
    BatchNorm3D as BatchNorm3D,
    GroupNorm as GroupNorm,
    InstanceNorm1D as InstanceNorm1D,
    InstanceNorm2D as InstanceNorm2D,
    InstanceNorm3D as InstanceNorm3D,
    LayerNorm as LayerNorm,
    LocalResponseNorm as LocalResponseNorm,
    SyncBatchNorm as SyncBatchNorm,
)
from fluidlite.paddle.nn.layer.pooling import (
    AdaptiveAvgPool1D as AdaptiveAvgPool1D,
    AdaptiveAvgPool2D as AdaptiveAvgPool2D,
    AdaptiveAvgPool3D as AdaptiveAvgPool3D,
    AdaptiveMaxPool1D as AdaptiveMaxPool1D,
    AdaptiveMaxPool2D as AdaptiveMaxPool2D,
    AdaptiveMaxPool3D as AdaptiveMaxPool3D,
    AvgPool1D as AvgPool1D,
    AvgPool2D as AvgPool2D,
    AvgPool3D as AvgPool3D,
    MaxPool1D as MaxPool1D,
    MaxPool2D as MaxPool2D,
    MaxPool3D as MaxPool3D,
)
from fluidlite.paddle.nn.layer.rnn import (
    BiRNN as BiRNN,
    GRU as GRU,
    LSTM as LSTM,
    RNN as RNN,
    SimpleRNN as SimpleRNN,
)
from fluidlite.paddle.nn.layer.rnn import GRUCell as GRUCell, LSTMCell as LSTMCell, RNNCellBase as RNNCellBase, SimpleRNNCell as SimpleRNNCell
from fluidlite.paddle.nn.layer.transformer import (
    MultiHeadAttention as MultiHeadAttention,
    Transformer as Transformer,
    TransformerDecoder as TransformerDecoder,
    TransformerDecoderLayer as TransformerDecoderLayer,
    TransformerEncoder as TransformerEncoder,
    TransformerEncoderLayer as TransformerEncoderLayer,
)
from fluidlite.paddle.optimizer.clip import (
    ClipGradByGlobalNorm as ClipGradByGlobalNorm,
    ClipGradByNorm as ClipGradByNorm,
    ClipGradByValue as ClipGradByValue,
)
from fluidlite.paddle.param_attr import (
    ParamAttr as ParamAttr,
)
