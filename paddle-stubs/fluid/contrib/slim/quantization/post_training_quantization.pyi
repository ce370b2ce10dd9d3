# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    core as core,
    framework as framework,
    io as io,
)
from fluidlite.contrib.slim.quantization.freezing import AddQuantDequantPass as AddQuantDequantPass
from fluidlite.contrib.slim.quantization.freezing import (
    QuantizationFreezePass as QuantizationFreezePass,
)
from fluidlite.contrib.slim.quantization.post_training_quantization import (
    PostTrainingQuantization as PostTrainingQuantization,
)
from fluidlite.contrib.slim.quantization.transform import (
    QuantizationTransformPass as QuantizationTransformPass,
)
from fluidlite.contrib.slim.quantization.weight_quantization import (
    WeightQuantization as WeightQuantization,
)
from fluidlite.executor.running.executor import (
    Executor as Executor,
)
from fluidlite.executor.tensors.scope import (
    global_scope as global_scope,
)
from fluidlite.framework.serialization.ir_graph import (
    IrGraph as IrGraph,
)
from fluidlite.log_helper import (
    get_logger as get_logger,
)
