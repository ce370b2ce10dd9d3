"""fluidlite: the Fluid 1.8 namespace on today's Python.

`import fluidlite as fluid` gives what `import paddle.fluid as fluid` gave; `python -m fluidlite SCRIPT` runs scripts
that import paddle.
"""

from . import (
    backward,
    clip,
    compiler,
    core,
    data_feeder,
    dygraph,
    executor,
    framework,
    initializer,
    io,
    layers,
    lod_tensor,
    metrics,
    nets,
    optimizer,
    param_attr,
    reader,
    regularizer,
)
from .backward import append_backward, gradients
from .base import missing, unique_name
from .base.place import (
    CPUPlace,
    CUDAPinnedPlace,
    CUDAPlace,
    cpu_places,
    cuda_pinned_places,
    cuda_places,
    is_compiled_with_cuda,
)
from .clip import ErrorClipByValue
from .compiler import BuildStrategy, CompiledProgram, ExecutionStrategy
from .data import data
from .data_feeder import DataFeeder
from .dygraph import (
    Layer,
    disable_dygraph,
    disable_imperative,
    enable_dygraph,
    enable_imperative,
    load_dygraph,
    save_dygraph,
)
from .dygraph.base import in_dygraph_mode
from .dygraph.nn import (
    NCE,
    BatchNorm,
    BCELoss,
    BilinearTensorProduct,
    Conv2D,
    Conv2DTranspose,
    Conv3D,
    Conv3DTranspose,
    Dropout,
    Embedding,
    GroupNorm,
    GRUUnit,
    InstanceNorm,
    L1Loss,
    LayerNorm,
    Linear,
    MSELoss,
    NLLLoss,
    Pool2D,
    PRelu,
    SpectralNorm,
    TreeConv,
)
from .executor import Executor, LoDTensor, LoDTensorArray, Scope, global_scope, scope_guard
from .framework import (
    Program,
    Variable,
    default_main_program,
    default_startup_program,
    name_scope,
    program_guard,
    require_version,
)
from .input import embedding, one_hot
from .io import load, load_program_state, save, set_program_state
from .lod_tensor import create_lod_tensor, create_random_int_lodtensor
from .parallel_executor import ParallelExecutor
from .param_attr import ParamAttr, WeightNormParamAttr

Tensor = LoDTensor
__version__ = "0.1.0"

__all__ = [
    "BCELoss",
    "BatchNorm",
    "BilinearTensorProduct",
    "BuildStrategy",
    "CPUPlace",
    "CUDAPinnedPlace",
    "CUDAPlace",
    "CompiledProgram",
    "Conv2D",
    "Conv2DTranspose",
    "Conv3D",
    "Conv3DTranspose",
    "DataFeeder",
    "Dropout",
    "Embedding",
    "ErrorClipByValue",
    "ExecutionStrategy",
    "Executor",
    "GRUUnit",
    "GroupNorm",
    "InstanceNorm",
    "L1Loss",
    "Layer",
    "LayerNorm",
    "Linear",
    "LoDTensor",
    "LoDTensorArray",
    "MSELoss",
    "NCE",
    "NLLLoss",
    "PRelu",
    "ParallelExecutor",
    "ParamAttr",
    "Pool2D",
    "Program",
    "Scope",
    "SpectralNorm",
    "Tensor",
    "TreeConv",
    "Variable",
    "WeightNormParamAttr",
    "append_backward",
    "backward",
    "clip",
    "compiler",
    "core",
    "cpu_places",
    "create_lod_tensor",
    "create_random_int_lodtensor",
    "cuda_pinned_places",
    "cuda_places",
    "data",
    "data_feeder",
    "default_main_program",
    "default_startup_program",
    "disable_dygraph",
    "disable_imperative",
    "dygraph",
    "embedding",
    "enable_dygraph",
    "enable_imperative",
    "executor",
    "framework",
    "global_scope",
    "gradients",
    "in_dygraph_mode",
    "initializer",
    "io",
    "is_compiled_with_cuda",
    "layers",
    "load",
    "load_dygraph",
    "load_program_state",
    "lod_tensor",
    "metrics",
    "name_scope",
    "nets",
    "one_hot",
    "optimizer",
    "param_attr",
    "program_guard",
    "reader",
    "regularizer",
    "require_version",
    "save",
    "save_dygraph",
    "scope_guard",
    "set_program_state",
    "unique_name",
]

__getattr__ = missing.reporter(__name__)
