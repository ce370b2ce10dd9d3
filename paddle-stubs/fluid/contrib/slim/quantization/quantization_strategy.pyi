# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    core as core,
    io as io,
)
from fluidlite.contrib.slim.core.strategy import (
    Strategy as Strategy,
)
from fluidlite.contrib.slim.quantization.freezing import AddQuantDequantPass as AddQuantDequantPass
from fluidlite.contrib.slim.quantization.freezing import (
    ConvertToInt8Pass as ConvertToInt8Pass,
    QuantizationFreezePass as QuantizationFreezePass,
    TransformForMobilePass as TransformForMobilePass,
)
from fluidlite.contrib.slim.quantization.freezing import OutScaleForInferencePass as OutScaleForInferencePass, OutScaleForTrainingPass as OutScaleForTrainingPass
from fluidlite.contrib.slim.quantization.quantization_strategy import (
    QuantizationStrategy as QuantizationStrategy,
)
from fluidlite.contrib.slim.quantization.transform import (
    QuantizationTransformPass as QuantizationTransformPass,
)
from fluidlite.executor.parallel.compiler import (
    CompiledProgram as CompiledProgram,
)
from fluidlite.executor.parallel.strategies import (
    BuildStrategy as BuildStrategy,
)
from fluidlite.executor.running.executor import (
    Executor as Executor,
)
from fluidlite.executor.tensors.scope import (
    scope_guard as scope_guard,
)
from fluidlite.framework.program import (
    Program as Program,
)
from fluidlite.framework.serialization.ir_graph import (
    IrGraph as IrGraph,
)
from fluidlite.framework.variable import (
    Variable as Variable,
)
from fluidlite.log_helper import (
    get_logger as get_logger,
)
