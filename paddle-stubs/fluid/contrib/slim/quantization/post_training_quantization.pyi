# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    framework as framework,
)
from fluidlite.fluid import (
    core as core,
    io as io,
)
from fluidlite.fluid.contrib.slim.quantization.post_training_quantization import (
    AddQuantDequantPass as AddQuantDequantPass,
    Executor as Executor,
    IrGraph as IrGraph,
    PostTrainingQuantization as PostTrainingQuantization,
    QuantizationFreezePass as QuantizationFreezePass,
    QuantizationTransformPass as QuantizationTransformPass,
    WeightQuantization as WeightQuantization,
    global_scope as global_scope,
)
from fluidlite.fluid.small_modules import (
    get_logger as get_logger,
)
