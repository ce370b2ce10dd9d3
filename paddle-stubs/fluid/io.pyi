# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    paddle as paddle,
    reader as reader,
)
from fluidlite.executor.executor import (
    Executor as Executor,
)
from fluidlite.executor.parallel.compiler import (
    CompiledProgram as CompiledProgram,
)
from fluidlite.executor.scope import (
    global_scope as global_scope,
)
from fluidlite.fluid import (
    core as core,
    layers as layers,
    unique_name as unique_name,
)
from fluidlite.fluid.evaluator import (
    Evaluator as Evaluator,
)
from fluidlite.fluid.io import (
    BatchSampler as BatchSampler,
    ComposeNotAligned as ComposeNotAligned,
    DataLoader as DataLoader,
    Dataset as Dataset,
    PyReader as PyReader,
    append_fetch_ops as append_fetch_ops,
    batch as batch,
    buffered as buffered,
    cache as cache,
    chain as chain,
    compose as compose,
    default_collate_fn as default_collate_fn,
    firstn as firstn,
    get_parameter_value as get_parameter_value,
    get_parameter_value_by_name as get_parameter_value_by_name,
    get_program_parameter as get_program_parameter,
    get_program_persistable_vars as get_program_persistable_vars,
    is_belong_to_optimizer as is_belong_to_optimizer,
    is_parameter as is_parameter,
    is_persistable as is_persistable,
    load as load,
    load_inference_model as load_inference_model,
    load_params as load_params,
    load_persistables as load_persistables,
    load_program_state as load_program_state,
    load_vars as load_vars,
    map_readers as map_readers,
    multiprocess_reader as multiprocess_reader,
    prepend_feed_ops as prepend_feed_ops,
    save as save,
    save_inference_model as save_inference_model,
    save_params as save_params,
    save_persistables as save_persistables,
    save_vars as save_vars,
    set_program_state as set_program_state,
    shuffle as shuffle,
    xmap_readers as xmap_readers,
)
from fluidlite.fluid.small_modules import (
    get_logger as get_logger,
)
from fluidlite.framework.program import (
    Program as Program,
    default_main_program as default_main_program,
    default_startup_program as default_startup_program,
    program_guard as program_guard,
)
from fluidlite.framework.variable import (
    Parameter as Parameter,
    Variable as Variable,
)
from fluidlite.paddle import (
    compat as cpt,
)
