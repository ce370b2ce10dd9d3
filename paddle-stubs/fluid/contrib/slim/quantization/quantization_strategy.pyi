# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.executor.executor import (
    Executor as Executor,
)
from fluidlite.executor.parallel.compiler import (
    CompiledProgram as CompiledProgram,
)
from fluidlite.executor.parallel.strategies import (
    BuildStrategy as BuildStrategy,
)
from fluidlite.fluid import (
    core as core,
    io as io,
)
from fluidlite.fluid.contrib.slim.quantization import (
    ConvertToInt8Pass as ConvertToInt8Pass,
    IrGraph as IrGraph,
    QuantizationFreezePass as QuantizationFreezePass,
    QuantizationStrategy as QuantizationStrategy,
    QuantizationTransformPass as QuantizationTransformPass,
    Strategy as Strategy,
    TransformForMobilePass as TransformForMobilePass,
    scope_guard as scope_guard,
)
from fluidlite.fluid.contrib.slim.quantization.freezing import (
    AddQuantDequantPass as AddQuantDequantPass,
    OutScaleForInferencePass as OutScaleForInferencePass,
    OutScaleForTrainingPass as OutScaleForTrainingPass,
)
from fluidlite.fluid.small_modules import (
    get_logger as get_logger,
)
from fluidlite.framework.program import (
    Program as Program,
)
from fluidlite.framework.variable import (
    Variable as Variable,
)
