# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.executor.scope import (
    scope_guard as scope_guard,
)
from fluidlite.fluid import (
    core as core,
    unique_name as unique_name,
)
from fluidlite.fluid.contrib.slim.quantization.freezing import (
    AddQuantDequantPass as AddQuantDequantPass,
    ConvertToInt8Pass as ConvertToInt8Pass,
    OutScaleForInferencePass as OutScaleForInferencePass,
    OutScaleForTrainingPass as OutScaleForTrainingPass,
    QuantizationFreezePass as QuantizationFreezePass,
    TransformForMobilePass as TransformForMobilePass,
)
from fluidlite.fluid.contrib.slim.quantization.transform import (
    QuantizationTransformPass as QuantizationTransformPass,
)
from fluidlite.fluid.data import (
    data as data,
)
from fluidlite.fluid.layers.tensor.arithmetic import (
    mean as mean,
)
from fluidlite.framework.operator import (
    Operator as Operator,
)
from fluidlite.framework.program import (
    Program as Program,
    default_startup_program as default_startup_program,
    program_guard as program_guard,
)
from fluidlite.framework.serialization.ir_graph import (
    IrGraph as IrGraph,
    IrNode as IrNode,
)
from fluidlite.paddle import (
    compat as cpt,
)
