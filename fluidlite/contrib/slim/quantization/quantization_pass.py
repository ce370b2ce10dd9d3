"""The passes of quantization-aware training (`fluid.contrib.slim.quantization.quantization_pass`)."""

from ....base import missing
from .freezing import (
    AddQuantDequantPass,
    ConvertToInt8Pass,
    OutScaleForInferencePass,
    OutScaleForTrainingPass,
    QuantizationFreezePass,
    TransformForMobilePass,
)
from .transform import QuantizationTransformPass

__all__ = [
    "AddQuantDequantPass",
    "ConvertToInt8Pass",
    "OutScaleForInferencePass",
    "OutScaleForTrainingPass",
    "QuantizationFreezePass",
    "QuantizationTransformPass",
    "TransformForMobilePass",
]

__getattr__ = missing.reporter(__name__)
