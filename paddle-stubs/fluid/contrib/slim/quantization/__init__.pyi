# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from . import (
    post_training_quantization as post_training_quantization,
    quantization_pass as quantization_pass,
    quantization_strategy as quantization_strategy,
)
from fluidlite.fluid.contrib.slim.quantization import (
    AddQuantDequantPass as AddQuantDequantPass,
    ConvertToInt8Pass as ConvertToInt8Pass,
    OutScaleForInferencePass as OutScaleForInferencePass,
    OutScaleForTrainingPass as OutScaleForTrainingPass,
    PostTrainingQuantization as PostTrainingQuantization,
    QuantizationFreezePass as QuantizationFreezePass,
    QuantizationStrategy as QuantizationStrategy,
    QuantizationTransformPass as QuantizationTransformPass,
    TransformForMobilePass as TransformForMobilePass,
    WeightQuantization as WeightQuantization,
)
