# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    framework as framework,
)
from fluidlite.base.place import (
    cpu_places as cpu_places,
    cuda_places as cuda_places,
)
from fluidlite.executor.parallel.compiler import (
    CompiledProgram as CompiledProgram,
)
from fluidlite.executor.parallel.strategies import (
    BuildStrategy as BuildStrategy,
    ExecutionStrategy as ExecutionStrategy,
)
from fluidlite.fluid import (
    core as core,
)
from fluidlite.fluid.inference.config import (
    AnalysisConfig as InferAnalysisConfig,
    NativeConfig as InferNativeConfig,
)
from fluidlite.paddle import (
    compat as cpt,
)
