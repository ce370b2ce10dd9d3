"""fluidlite: the Fluid 1.8 namespace on today's Python.

`import fluidlite as fluid` gives what `import paddle.fluid as fluid` gave; `python -m fluidlite SCRIPT` runs scripts
that import paddle.
"""

from typing import TYPE_CHECKING

from . import executor, framework
from .base import missing
from .base.fluid_flags import get_flags, set_flags
from .base.place import (
    CPUPlace,
    CUDAPinnedPlace,
    CUDAPlace,
    cpu_places,
    cuda_pinned_places,
    cuda_places,
    is_compiled_with_cuda,
)
from .base.reports import tracebacks
from .executor import LoDTensor, LoDTensorArray, Scope, global_scope, scope_guard
from .fluid import (
    clip,
    initializer,
    io,
    layers,
    optimizer,
    param_attr,
    regularizer,
    unique_name,
)
from .fluid.clip import ErrorClipByValue
from .fluid.data import data
from .fluid.param_attr import ParamAttr, WeightNormParamAttr
from .framework import (
    ComplexVariable,
    Program,
    Variable,
    default_main_program,
    default_startup_program,
    device_guard,
    name_scope,
    program_guard,
    require_version,
)
from .framework.gradients.backward import append_backward, gradients

if TYPE_CHECKING:
    # Rarely used names, loaded on first access. Those that are not in `__all__` are the errors of this package.
    from . import reader
    from .base.errors import (  # noqa: F401
        ArgumentAssertion,
        ArgumentError,
        ArgumentTypeError,
        DataTypeError,
        DownloadError,
        MissingModelError,
        MissingPartError,
        MissingValueError,
        NotSupportedError,
        StaticModeError,
        TypeAssertion,
        UnknownOperator,
    )
    from .base.version import VersionError  # noqa: F401
    from .distributed.communicator import DistributedError, RankLost  # noqa: F401
    from .distributed.rpc.transport import RpcError, ServerLost, TrainerLost  # noqa: F401
    from .executor import Executor
    from .executor.lod_tensor import create_lod_tensor, create_random_int_lodtensor
    from .executor.parallel.compiler import CompiledProgram, ParallelExecutor
    from .executor.parallel.strategies import BuildStrategy, ExecutionStrategy
    from .fluid import (
        contrib,
        core,
        data_feeder,
        dygraph,
        evaluator,
        incubate,
        metrics,
        nets,
        op,
        profiler,
    )
    from .fluid.core.system import core_suffix, legacy_core
    from .fluid.data_feeder import DataFeeder
    from .fluid.dygraph import (
        Layer,
        disable_dygraph,
        disable_imperative,
        enable_dygraph,
        enable_imperative,
        load_dygraph,
        save_dygraph,
    )
    from .fluid.dygraph.base import in_dygraph_mode
    from .fluid.dygraph.nn import (
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
    from .fluid.io import load, load_program_state, save, set_program_state
    from .fluid.metrics import NotProbability  # noqa: F401
    from .fluid.small_modules import (
        embedding,
        memory_optimize,
        monkey_patch_varbase,
        monkey_patch_variable,
        one_hot,
        release_memory,
    )
    from .old_scripts import OldNameWarning  # noqa: F401
    from .reader.decorators import ComposeNotAligned, SizeError  # noqa: F401
    from .reader.loader.epoch import LoaderError  # noqa: F401
    from .reader.loader.source import FieldCountError, ItemCountError  # noqa: F401
    from .reader.slots.datasets import DatasetFactory, InMemoryDataset, QueueDataset
    from .reader.slots.feed_description import DataFeedDesc
    from .reader.worker.channel import WorkerDied, WorkerTimeout, WorkerTraceback  # noqa: F401

Tensor = LoDTensor
__version__ = "0.2.0"

__all__ = [
    "BCELoss",
    "BatchNorm",
    "BilinearTensorProduct",
    "BuildStrategy",
    "CPUPlace",
    "CUDAPinnedPlace",
    "CUDAPlace",
    "CompiledProgram",
    "ComplexVariable",
    "Conv2D",
    "Conv2DTranspose",
    "Conv3D",
    "Conv3DTranspose",
    "DataFeeder",
    "DataFeedDesc",
    "DatasetFactory",
    "Dropout",
    "Embedding",
    "ErrorClipByValue",
    "ExecutionStrategy",
    "Executor",
    "GRUUnit",
    "GroupNorm",
    "InMemoryDataset",
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
    "QueueDataset",
    "Scope",
    "SpectralNorm",
    "Tensor",
    "TreeConv",
    "Variable",
    "WeightNormParamAttr",
    "append_backward",
    "average",
    "backward",
    "clip",
    "compiler",
    "contrib",
    "core",
    "core_suffix",
    "cpu_places",
    "create_lod_tensor",
    "create_random_int_lodtensor",
    "cuda_pinned_places",
    "cuda_places",
    "data",
    "data_feeder",
    "default_main_program",
    "default_scope_funcs",
    "default_startup_program",
    "device_guard",
    "disable_dygraph",
    "disable_imperative",
    "dygraph",
    "embedding",
    "enable_dygraph",
    "enable_imperative",
    "evaluator",
    "executor",
    "framework",
    "get_flags",
    "global_scope",
    "gradients",
    "in_dygraph_mode",
    "incubate",
    "initializer",
    "io",
    "is_compiled_with_cuda",
    "layers",
    "legacy_core",
    "load",
    "load_dygraph",
    "load_program_state",
    "lod_tensor",
    "memory_optimize",
    "metrics",
    "monkey_patch_varbase",
    "monkey_patch_variable",
    "name_scope",
    "nets",
    "one_hot",
    "op",
    "optimizer",
    "param_attr",
    "profiler",
    "program_guard",
    "reader",
    "regularizer",
    "release_memory",
    "require_version",
    "save",
    "save_dygraph",
    "scope_guard",
    "set_flags",
    "set_program_state",
    "unique_name",
    "wrapped_decorator",
]

tracebacks.install()
__getattr__, __dir__ = missing.lazy(__name__)
