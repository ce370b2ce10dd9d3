# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from . import (
    post_training_quantization as post_training_quantization,
    quantization_pass as quantization_pass,
    quantization_strategy as quantization_strategy,
)
from fluidlite.contrib.slim.quantization.freezing import AddQuantDequantPass as AddQuantDequantPass
from fluidlite.contrib.slim.quantization.freezing import (
    ConvertToInt8Pass as ConvertToInt8Pass,
    QuantizationFreezePass as QuantizationFreezePass,
    TransformForMobilePass as TransformForMobilePass,
)
from fluidlite.contrib.slim.quantization.freezing import OutScaleForInferencePass as OutScaleForInferencePass, OutScaleForTrainingPass as OutScaleForTrainingPass
from fluidlite.contrib.slim.quantization.post_training_quantization import (
    PostTrainingQuantization as PostTrainingQuantization,
)
from fluidlite.contrib.slim.quantization.quantization_strategy import (
    QuantizationStrategy as QuantizationStrategy,
)
from fluidlite.contrib.slim.quantization.transform import (
    QuantizationTransformPass as QuantizationTransformPass,
)
from fluidlite.contrib.slim.quantization.weight_quantization import (
    WeightQuantization as WeightQuantization,
)
