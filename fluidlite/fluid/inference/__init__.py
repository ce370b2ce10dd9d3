"""The Python inference API of Fluid 1.8 (`fluid.core.AnalysisConfig`, `create_paddle_predictor`)."""

from .config import (
    AnalysisConfig,
    CpuPassStrategy,
    GpuPassStrategy,
    MkldnnQuantizerConfig,
    NativeConfig,
    PaddlePassBuilder,
    PassStrategy,
)
from .predictor import AnalysisPredictor, NativePaddlePredictor, PaddlePredictor, create_paddle_predictor
from .tensors import (
    PaddleBuf,
    PaddleDType,
    PaddlePlace,
    PaddleTensor,
    ZeroCopyTensor,
    paddle_dtype_size,
    paddle_tensor_to_bytes,
)

__all__ = [
    "AnalysisConfig",
    "AnalysisPredictor",
    "CpuPassStrategy",
    "GpuPassStrategy",
    "MkldnnQuantizerConfig",
    "NativeConfig",
    "NativePaddlePredictor",
    "PaddleBuf",
    "PaddleDType",
    "PaddlePassBuilder",
    "PaddlePlace",
    "PaddlePredictor",
    "PaddleTensor",
    "PassStrategy",
    "ZeroCopyTensor",
    "create_paddle_predictor",
    "paddle_dtype_size",
    "paddle_tensor_to_bytes",
]
