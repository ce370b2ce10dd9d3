"""Names of Fluid 1.8 that will never be supported, and why."""

from __future__ import annotations

from .fluid_names import listed

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
