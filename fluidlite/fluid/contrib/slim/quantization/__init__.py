"""`fluid.contrib.slim.quantization`: training and inference with integers of few bits."""

from . import post_training_quantization, quantization_strategy
from .freezing import (
    AddQuantDequantPass,
    ConvertToInt8Pass,
    OutScaleForInferencePass,
    OutScaleForTrainingPass,
    QuantizationFreezePass,
    TransformForMobilePass,
)
from .post_training_quantization import PostTrainingQuantization, WeightQuantization
from .quantization_strategy import QuantizationStrategy
from .transform import QuantizationTransformPass

__all__ = [
    "AddQuantDequantPass",
    "ConvertToInt8Pass",
    "OutScaleForInferencePass",
    "OutScaleForTrainingPass",
    "PostTrainingQuantization",
    "QuantizationFreezePass",
    "QuantizationStrategy",
    "QuantizationTransformPass",
    "TransformForMobilePass",
    "WeightQuantization",
    "post_training_quantization",
    "quantization_pass",
    "quantization_strategy",
]
