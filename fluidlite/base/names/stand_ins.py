"""Names of Fluid 1.8 that are missing here: stand-ins for them, and why some will never come."""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Callable
from types import ModuleType
from typing import Any, NoReturn

from ..errors import NotSupportedError
from .fluid_modules import listed

# Stand-ins for names of Fluid 1.8 that are missing in this package: they can be imported, and raise when used.
#
# A script runs until it uses a missing name. Stand-ins can be passed on, stored, subclassed and tested with `hasattr`
# as in Fluid; calling them, their subclasses or their attributes raises NotSupportedError.


class StandIn(ABCMeta):
    """The type of names that are missing. They are classes, so that classes can be derived from them.

    (An ABCMeta so that scripts may mix them with abstract classes.)
    """

    _explain: Callable[[], str]
    _never: str | None

    def __call__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotSupportedError(cls._explain())

    def __getattr__(cls, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(f"type object {cls.__name__!r} has no attribute {name!r}", name=name)
        raise NotSupportedError(cls._explain(), name=name)

    def __getitem__(cls, key: Any) -> NoReturn:
        raise NotSupportedError(cls._explain())

    def __iter__(cls) -> NoReturn:
        raise NotSupportedError(cls._explain())

    def __instancecheck__(cls, instance: Any) -> bool:
        return False

    def __repr__(cls) -> str:
        return f"<{cls._explain()}>"


def stand_in(module: str, name: str, explain: Callable[[], str], never: str | None = None) -> StandIn:
    """A stand-in for `name` of Fluid's `module`; `explain()` returns the text of its error.

    `never`: why the name will never be supported, if that is decided.
    """
    space = {
        "__module__": module,
        "__doc__": "Not in fluidlite.",
        "_explain": staticmethod(explain),
        "_never": never,
    }
    return StandIn(name, (), space)


class StandInModule(ModuleType):
    """A module of Fluid that is missing here; `find` looks its names up."""

    def __init__(self, name: str, find: Callable[[str], Any], names: list[str]) -> None:
        super().__init__(name, "A module of Fluid 1.8 that is not in fluidlite.")
        self.__path__: list[str] = []
        self.__all__ = names
        self._find = find

    def __getattr__(self, name: str) -> Any:
        return self._find(name)

    def __dir__(self) -> list[str]:
        return self.__all__


def why_never(value: Any) -> str | None:
    """Why the name that `value` replaces will never be supported; None if undecided or `value` is no stand-in."""
    return value._never if isinstance(value, StandIn) else None


def is_stand_in(value: Any) -> bool:
    """Whether `value` only stands for a name that is missing."""
    return isinstance(value, (StandIn, StandInModule))


_BOXPS = "it drives BoxPS, a server that exists inside Baidu only"
_PSLIB = (
    "it drives PSLib, whose servers exist inside Baidu only: use "
    "fluid.incubate.fleet.parameter_server.distribute_transpiler"
)
_OF_PSLIB = """
fluid.distributed.fleet.Fleet
fluid.distributed.helper.MPIHelper
fluid.distributed.ps_instance.PaddlePSInstance
fluid.incubate.fleet.parameter_server.pslib.DownpourOptimizer
fluid.incubate.fleet.parameter_server.pslib.FLEET_GLOBAL_DICT
fluid.incubate.fleet.parameter_server.pslib.PSLib
fluid.incubate.fleet.parameter_server.pslib.fleet
fluid.incubate.fleet.parameter_server.pslib.fleet_embedding
fluid.incubate.fleet.parameter_server.pslib.node.DownpourServer
fluid.incubate.fleet.parameter_server.pslib.node.DownpourWorker
fluid.incubate.fleet.parameter_server.pslib.node.Server
fluid.incubate.fleet.parameter_server.pslib.node.Worker
fluid.incubate.fleet.parameter_server.pslib.optimizer_factory.DistributedAdam
fluid.incubate.fleet.parameter_server.pslib.optimizer_factory.DistributedOptimizerImplBase
fluid.incubate.fleet.parameter_server.pslib.optimizer_factory.FLEET_GLOBAL_DICT
fluid.incubate.fleet.utils.fleet_util.fleet
fluid.incubate.fleet.utils.fleet_util.fleet_pslib
"""
_NATIVE = (
    "it loads operators compiled against the C++ classes of one release of Paddle; "
    "fluid.layers.py_func takes operators written in Python"
)
_MKLDNN = (
    "it rewrites programs for the int8 kernels of Paddle's builds with MKL-DNN; "
    "PostTrainingQuantization and QuantizationFreezePass give the same numbers everywhere"
)
_LEFT = "it is no more than what Fluid's own code leaves behind while it is imported"
RAISES = "Fluid 1.8.5 raises there itself"
"""The beginning of reasons for names that never worked in Fluid."""
_GONE = f"{RAISES}: it has no such operator any more; fluid.layers has cond and DynamicRNN"
_TRANSLATION = (
    "it is a step of Fluid's translation of syntax trees, which works by another mechanism here: use "
    "fluid.dygraph.declarative, and fluid.dygraph.ProgramTranslator().get_code(function) to read the result"
)
_CLASS = "it is a class of Paddle's C++ side that scripts cannot use by itself: use "

_REASONS = {
    "fluid.contrib.utils.lookup_table_utils.convert_dist_to_sparse_program": "Fluid 1.8's transpiler makes no programs "
    "any more that it converts: embedding(is_distributed=True) runs as distributed_lookup_table",
    "fluid.contrib.utils.lookup_table_utils.load_persistables_for_inference": f"{RAISES}: it asks for an operator "
    "that it does not have; use fluid.io.load_persistables",
    "fluid.contrib.slim.quantization.mkldnn_post_training_strategy.MKLDNNPostTrainingQuantStrategy": _MKLDNN,
    "fluid.contrib.slim.quantization.qat2_int8_mkldnn_pass.Qat2Int8MkldnnPass": _MKLDNN,
    "fluid.contrib.slim.quantization.qat_int8_mkldnn_pass.QatInt8MkldnnPass": _MKLDNN,
    "fluid.core.BoxPS": _BOXPS,
    "fluid.core.Dataset": f"{_CLASS}fluid.DatasetFactory",
    "fluid.core.DistCommunicator": f"{_CLASS}fluid.communicator.Communicator",
    "fluid.core.FetchUnmergedList": f"{_CLASS}fluid.Executor",
    "fluid.core.IterableDatasetWrapper": f"{_CLASS}fluid.io.DataLoader.from_dataset",
    "fluid.core.ParallelExecutor": f"{_CLASS}fluid.CompiledProgram",
    "fluid.core.ProgramDescTracer": f"{_CLASS}fluid.dygraph.TracedLayer",
    "fluid.core.Reader": f"{_CLASS}fluid.io.DataLoader",
    "fluid.core.TrainerBase": f"{_CLASS}fluid.Executor.train_from_dataset",
    "fluid.core.load_op_library": _NATIVE,
    "fluid.core.ops.coalesce_tensor": "what it makes are parts of one piece of memory, which operators then change in "
    "place; values have memory of their own here: use fluid.layers.concat",
    "fluid.core.ops.pull_box_sparse": _BOXPS,
    "fluid.core.ops.pull_sparse": _PSLIB,
    "fluid.core.ops.pull_sparse_v2": _PSLIB,
    "fluid.core.ops.push_dense": _PSLIB,
    "fluid.core.ops.run_program": f"{RAISES}: nothing can be given as its OutScope from Python; use "
    "fluid.dygraph.declarative",
    "fluid.distributed.helper.FileSystem": f"{RAISES}: it imports a module that Python 3 does not find",
    "fluid.core.Fleet": _PSLIB,
    "fluid.dataset.BoxPSDataset": f"{_BOXPS}: use InMemoryDataset",
    "fluid.dataset.FileInstantDataset": "it reads a binary form that no published tool writes: use QueueDataset",
    "fluid.framework.load_op_library": _NATIVE,
    "fluid.layers.nn._pull_sparse": _PSLIB,
    "fluid.layers.nn._pull_sparse_v2": _PSLIB,
    "fluid.layers.nn.op_proto": _LEFT,
    "fluid.op.CondOp": _GONE,
    "fluid.op.DynamicRecurrentOp": _GONE,
    "fluid.op.RecurrentOp": _GONE,
}

_REASONS.update((name, _PSLIB) for name in _OF_PSLIB.split())


def reason(name: str) -> str | None:
    """Why `name` (`fluid.core.BoxPS`, by any of its paths) will never be supported; None if that is not decided."""
    module, _, last = name.rpartition(".")
    origin = listed().get(module, {}).get(last)
    full = f"{origin.module}.{origin.name}" if origin else name
    if full.startswith("fluid.dygraph.dygraph_to_static."):
        return _TRANSLATION
    return _REASONS.get(full)
