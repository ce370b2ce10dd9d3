# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from . import (
    inference as inference,
    input as input,
    nn as nn,
)
from fluidlite.base.place import (
    cpu_places as cpu_places,
    cuda_places as cuda_places,
)
from fluidlite.dygraph.jit.models import InputSpec as InputSpec
from fluidlite.executor.parallel.compiler import (
    CompiledProgram as CompiledProgram,
    ParallelExecutor as ParallelExecutor,
)
from fluidlite.executor.parallel.strategies import (
    BuildStrategy as BuildStrategy,
    ExecutionStrategy as ExecutionStrategy,
)
from fluidlite.executor.running.executor import (
    Executor as Executor,
)
from fluidlite.executor.tensors.scope import (
    Scope as Scope,
    global_scope as global_scope,
    scope_guard as scope_guard,
)
from fluidlite.framework.gradients.backward import (
    append_backward as append_backward,
    gradients as gradients,
)
from fluidlite.framework.name_scopes import (
    name_scope as name_scope,
)
from fluidlite.framework.program import (
    Program as Program,
    default_main_program as default_main_program,
    default_startup_program as default_startup_program,
    program_guard as program_guard,
)
from fluidlite.framework.variable import (
    Variable as Variable,
)
from fluidlite.io.state import (
    load as load,
    load_program_state as load_program_state,
    save as save,
    set_program_state as set_program_state,
)
from fluidlite.layers.control_flow.arrays import Print as Print
from fluidlite.layers.tensor.variables import (
    create_global_var as create_global_var,
    create_parameter as create_parameter,
)
from fluidlite.paddle.metric import (
    accuracy as accuracy,
)
from fluidlite.paddle.param_attr import (
    ParamAttr as ParamAttr,
)
from fluidlite.paddle.static.inference import (
    load_inference_model as load_inference_model,
    save_inference_model as save_inference_model,
)
from fluidlite.paddle.static.input import (
    data as data,
)
