# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from . import (
    annotations as annotations,
    average as average,
    backward as backward,
    clip as clip,
    communicator as communicator,
    compiler as compiler,
    contrib as contrib,
    core as core,
    data_feed_desc as data_feed_desc,
    data_feeder as data_feeder,
    dataset as dataset,
    debugger as debugger,
    default_scope_funcs as default_scope_funcs,
    device_worker as device_worker,
    distribute_lookup_table as distribute_lookup_table,
    distributed as distributed,
    dygraph as dygraph,
    dygraph_utils as dygraph_utils,
    evaluator as evaluator,
    executor as executor,
    framework as framework,
    graphviz as graphviz,
    incubate as incubate,
    initializer as initializer,
    input as input,
    install_check as install_check,
    io as io,
    layer_helper as layer_helper,
    layer_helper_base as layer_helper_base,
    layers as layers,
    lod_tensor as lod_tensor,
    log_helper as log_helper,
    metrics as metrics,
    multiprocess_utils as multiprocess_utils,
    net_drawer as net_drawer,
    nets as nets,
    op as op,
    optimizer as optimizer,
    parallel_executor as parallel_executor,
    param_attr as param_attr,
    profiler as profiler,
    reader as reader,
    regularizer as regularizer,
    trainer_desc as trainer_desc,
    trainer_factory as trainer_factory,
    transpiler as transpiler,
    unique_name as unique_name,
    wrapped_decorator as wrapped_decorator,
)
from fluidlite import (
    BCELoss as BCELoss,
    BatchNorm as BatchNorm,
    BilinearTensorProduct as BilinearTensorProduct,
    BuildStrategy as BuildStrategy,
    CompiledProgram as CompiledProgram,
    Conv2D as Conv2D,
    Conv2DTranspose as Conv2DTranspose,
    Conv3D as Conv3D,
    Conv3DTranspose as Conv3DTranspose,
    DataFeedDesc as DataFeedDesc,
    DataFeeder as DataFeeder,
    DatasetFactory as DatasetFactory,
    Dropout as Dropout,
    Embedding as Embedding,
    ExecutionStrategy as ExecutionStrategy,
    Executor as Executor,
    GRUUnit as GRUUnit,
    GroupNorm as GroupNorm,
    InMemoryDataset as InMemoryDataset,
    InstanceNorm as InstanceNorm,
    L1Loss as L1Loss,
    Layer as Layer,
    LayerNorm as LayerNorm,
    Linear as Linear,
    MSELoss as MSELoss,
    NCE as NCE,
    NLLLoss as NLLLoss,
    PRelu as PRelu,
    ParallelExecutor as ParallelExecutor,
    Pool2D as Pool2D,
    QueueDataset as QueueDataset,
    SpectralNorm as SpectralNorm,
    TreeConv as TreeConv,
    core as core_avx,
    core_suffix as core_suffix,
    create_lod_tensor as create_lod_tensor,
    create_random_int_lodtensor as create_random_int_lodtensor,
    disable_dygraph as disable_dygraph,
    disable_imperative as disable_imperative,
    embedding as embedding,
    enable_dygraph as enable_dygraph,
    enable_imperative as enable_imperative,
    in_dygraph_mode as in_dygraph_mode,
    legacy_core as legacy_core,
    load as load,
    load_dygraph as load_dygraph,
    load_program_state as load_program_state,
    memory_optimize as memory_optimize,
    monkey_patch_varbase as monkey_patch_varbase,
    monkey_patch_variable as monkey_patch_variable,
    one_hot as one_hot,
    proto as proto,
    release_memory as release_memory,
    save as save,
    save_dygraph as save_dygraph,
    set_program_state as set_program_state,
)
from fluidlite.base.fluid_flags import (
    get_flags as get_flags,
    set_flags as set_flags,
)
from fluidlite.base.place import (
    CPUPlace as CPUPlace,
    CUDAPinnedPlace as CUDAPinnedPlace,
    CUDAPlace as CUDAPlace,
    cpu_places as cpu_places,
    cuda_pinned_places as cuda_pinned_places,
    cuda_places as cuda_places,
    is_compiled_with_cuda as is_compiled_with_cuda,
)
from fluidlite.base.version import (
    require_version as require_version,
)
from fluidlite.clip import (
    ErrorClipByValue as ErrorClipByValue,
)
from fluidlite.data import (
    data as data,
)
from fluidlite.executor.tensors.lod_tensor import (
    LoDTensor as LoDTensor,
    LoDTensorArray as LoDTensorArray,
    LoDTensor as Tensor,
)
from fluidlite.executor.tensors.scope import (
    Scope as Scope,
    global_scope as global_scope,
    scope_guard as scope_guard,
)
from fluidlite.framework.complex_variable import (
    ComplexVariable as ComplexVariable,
)
from fluidlite.framework.devices import (
    device_guard as device_guard,
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
from fluidlite.incubate import (
    data_generator as data_generator,
    fleet as fleet,
)
from fluidlite.param_attr import (
    ParamAttr as ParamAttr,
    WeightNormParamAttr as WeightNormParamAttr,
)
from fluidlite.transpiler.distribute_transpiler import (
    DistributeTranspiler as DistributeTranspiler,
    DistributeTranspilerConfig as DistributeTranspilerConfig,
)
