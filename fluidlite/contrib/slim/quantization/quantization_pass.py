"""The passes of quantization-aware training (`fluid.contrib.slim.quantization.quantization_pass`)."""

from ....base import missing
from .activations import AddQuantDequantPass
from .freezing import ConvertToInt8Pass, QuantizationFreezePass, TransformForMobilePass
from .out_scale import OutScaleForInferencePass, OutScaleForTrainingPass
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
