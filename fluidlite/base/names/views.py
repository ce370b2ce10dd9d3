"""Modules that exist by name alone.

`fluidlite.layers` is `fluidlite.fluid.layers`, and so is all that is below them. Of some modules of Fluid or Paddle the
names are defined in other modules here: `import fluidlite.net_drawer` gives a module with the names that the table
lists, each the object of the module that defines it.
"""

# ruff: noqa: E501

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType
from typing import TYPE_CHECKING

from .fluid_modules import TOP, AliasLoader, Loader, canonical, fluid_name, keep_functions

if TYPE_CHECKING:
    from importlib.abc import MetaPathFinder
else:
    MetaPathFinder = object  # `importlib.abc` is slow to import

_ROOT = "fluidlite."
MIRRORS = ("dataset", "fluid", "paddle")
"""The folders whose modules are those of Fluid and Paddle: for names that they lack see `missing.reporter`."""

# fmt: off
VIEWS: dict[str, dict[str, str]] = {
    "fluid.annotations": {"fluid.small_modules": "deprecated"},
    "fluid.average": {"fluid.small_modules": "WeightedAverage"},
    "fluid.backward": {"framework.gradients.backward": "append_backward calc_gradient gradients", "framework.gradients.names": "serialize_op_decs ProgramStats | _all_in_set_ _append_grad_suffix_ _as_list _get_no_grad_set_name _get_stop_gradients_ _is_grad_var_ _some_in_set_ _strip_grad_suffix_"},
    "fluid.compiler": {"executor.parallel.compiler": "CompiledProgram", "executor.parallel.strategies": "BuildStrategy ExecutionStrategy"},
    "fluid.contrib.decoder.beam_search_decoder": {"fluid.contrib.decoder": "BeamSearchDecoder InitState StateCell TrainingDecoder | _DecoderType", "fluid.contrib.decoder.state_cell": "| _ArrayState _MemoryState"},
    "fluid.contrib.extend_optimizer.extend_optimizer_with_weight_decay": {"fluid.contrib.extend_optimizer": "extend_with_decoupled_weight_decay | DecoupledWeightDecay"},
    "fluid.contrib.layers.metric_op": {"fluid.contrib.layers.nn": "ctr_metric_bundle | LayerHelper Variable"},
    "fluid.contrib.memory_usage_calc": {"fluid.contrib.model_stat": "memory_usage | DEBUG dtype_to_size", "framework": "| Program"},
    "fluid.contrib.mixed_precision.decorator": {"fluid.contrib.mixed_precision": "decorate | AutoMixedPrecisionLists OptimizerWithMixedPrecision default_main_program default_startup_program layers rewrite_program update_loss_scaling update_role_var_grad"},
    "fluid.contrib.mixed_precision.fp16_lists": {"fluid.contrib.mixed_precision": "AutoMixedPrecisionLists | white_list black_list gray_list"},
    "fluid.contrib.mixed_precision.fp16_utils": {"fluid.contrib.mixed_precision": "AutoMixedPrecisionLists black_list find_op_index find_true_post_op find_true_prev_op gray_list rewrite_program update_loss_scaling update_role_var_grad white_list | _is_in_black_varnames layers"},
    "fluid.contrib.op_frequence": {"fluid.contrib.model_stat": "op_freq_statistic", "framework": "| Program"},
    "fluid.contrib.quantize.quantize_transpiler": {"fluid.contrib.quantize": "QuantizeTranspiler quant | _quantized_var_name _dequantized_var_name _quantized_scale_name _original_var_name"},
    "fluid.contrib.reader": {"fluid.contrib.utils": "distributed_batch_reader"},
    "fluid.contrib.reader.distributed_reader": {"fluid.contrib.utils": "distributed_batch_reader"},
    "fluid.contrib.slim.core.compressor": {"fluid.contrib.slim.core": "Compressor Context cached_reader | ConfigFactory EOFException GraphWrapper SlimGraphExecutor _logger get_logger scope_guard"},
    "fluid.contrib.slim.core.config": {"fluid.contrib.slim.core": "ConfigFactory PLUGINS | Strategy"},
    "fluid.contrib.slim.core.strategy": {"fluid.contrib.slim.core": "Strategy"},
    "fluid.contrib.slim.distillation.distillation_strategy": {"fluid.contrib.slim.distillation": "DistillationStrategy", "framework": "| Program program_guard", "fluid.contrib.slim.core": "| Strategy"},
    "fluid.contrib.slim.distillation.distiller": {"fluid.contrib.slim.distillation": "FSPDistiller FSPDistillerPass L2Distiller L2DistillerPass SoftLabelDistiller SoftLabelDistillerPass | Pairs", "framework": "| program_guard"},
    "fluid.contrib.slim.graph.executor": {"fluid.contrib.slim.graph": "SlimGraphExecutor | GraphWrapper", "reader.feeder": "| DataFeeder"},
    "fluid.contrib.slim.graph.graph_wrapper": {"fluid.contrib.slim.graph": "OPTIMIZER_OPS GraphWrapper OpWrapper VarWrapper | Nodes", "executor": "| Executor", "framework": "| Parameter Program Variable program_guard"},
    "fluid.contrib.slim.nas.controller_server": {"fluid.contrib.slim.nas": "ControllerServer | _logger get_logger"},
    "fluid.contrib.slim.nas.light_nas_strategy": {"fluid.contrib.slim.nas": "LightNASStrategy | ControllerServer Executor SearchAgent Strategy _logger=_strategy_logger get_logger lock unlock"},
    "fluid.contrib.slim.nas.lock": {"fluid.contrib.slim.nas": "LOCK_EX LOCK_UN lock unlock"},
    "fluid.contrib.slim.nas.search_agent": {"fluid.contrib.slim.nas": "SearchAgent"},
    "fluid.contrib.slim.nas.search_space": {"fluid.contrib.slim.nas": "SearchSpace"},
    "fluid.contrib.slim.prune.auto_prune_strategy": {"fluid.contrib.slim.prune": "AutoPruneStrategy | PruneStrategy"},
    "fluid.contrib.slim.quantization.quantization_pass": {"fluid.contrib.slim.quantization.freezing": "AddQuantDequantPass ConvertToInt8Pass OutScaleForInferencePass OutScaleForTrainingPass QuantizationFreezePass TransformForMobilePass", "fluid.contrib.slim.quantization.transform": "QuantizationTransformPass"},
    "fluid.contrib.slim.quantization.quantization_strategy": {"fluid.contrib.slim.quantization": "QuantizationStrategy | ConvertToInt8Pass IrGraph QuantizationFreezePass QuantizationTransformPass Strategy TransformForMobilePass core io scope_guard"},
    "fluid.contrib.slim.quantization.weight_quantization": {"fluid.contrib.slim.quantization.post_training_quantization": "WeightQuantization"},
    "fluid.contrib.slim.searcher.controller": {"fluid.contrib.slim.searcher": "EvolutionaryController SAController | _logger", "fluid.log_helper": "| get_logger"},
    "fluid.contrib.utils.hdfs_utils": {"fluid.contrib.utils": "HDFSClient multi_download multi_upload | _logger by_url getfilelist"},
    "fluid.contrib.utils.lookup_table_utils": {"fluid.contrib.utils": "get_inference_model load_persistables_for_increment lookup_table_dir", "fluid.io.inference": "model_filename=MODEL", "framework": "| Program"},
    "fluid.core.op_proto_and_checker_maker": {"fluid.core.programs": "OpRole kOpCreationCallstackAttrName kOpDeviceAttrName kOpNameScopeAttrName kOpRoleAttrName kOpRoleVarAttrName"},
    "fluid.core.var_names": {"fluid.core.programs": "empty temp"},
    "fluid.default_scope_funcs": {"fluid.small_modules": "enter_local_scope find_var get_cur_scope leave_local_scope scoped_function var"},
    "fluid.device_worker": {"fluid.trainer_desc": "DeviceWorker DownpourSGD DownpourSGDOPT Hogwild Section | DeviceWorkerFactory"},
    "fluid.distribute_lookup_table": {"fluid.small_modules": "LOOKUP_TABLE_TYPE find_distributed_lookup_table find_distributed_lookup_table_inputs find_distributed_lookup_table_outputs"},
    "fluid.dygraph.backward_strategy": {"eager.tracer": "BackwardStrategy"},
    "fluid.dygraph.layer_object_helper": {"fluid.dygraph.layers": "LayerObjectHelper"},
    "fluid.dygraph.learning_rate_scheduler": {"fluid.optimizer.schedules": "CosineDecay ExponentialDecay InverseTimeDecay LearningRateDecay LinearLrWarmup NaturalExpDecay NoamDecay PiecewiseDecay PolynomialDecay", "fluid.optimizer.epoch_schedules": "LambdaDecay MultiStepDecay ReduceLROnPlateau StepDecay"},
    "fluid.dygraph.math_op_patch": {"eager.tracer": "_varbase_creator | _supported_int_dtype_ monkey_patch_math_varbase"},
    "fluid.dygraph.parallel_helper": {"fluid.dygraph.parallel": "| _is_data_parallel_mode _set_parallel_ctx _init_parallel_ctx _broadcast_parameters"},
    "fluid.dygraph.profiler": {"fluid.core": "start_gperf_profiler=start_imperative_gperf_profiler stop_gperf_profiler=stop_imperative_gperf_profiler"},
    "fluid.dygraph.static_runner": {"fluid.dygraph.jit.models": "StaticModelRunner"},
    "fluid.dygraph_utils": {"fluid.small_modules": "| _append_activation_in_dygraph _append_bias_in_dygraph"},
    "fluid.layers.math_op_patch": {"fluid.layers.utils": "compare_ops"},
    "fluid.incubate.fleet.base.mode": {"fluid.incubate.fleet.base.fleet_base": "Mode"},
    "fluid.incubate.fleet.parameter_server.version": {"fluid.incubate.fleet.base.fleet_base": "is_transpiler | BUILD_MODE Mode"},
    "fluid.incubate.fleet.utils.fleet_barrier_util": {"fluid.incubate.fleet.utils.hdfs": "check_all_trainers_ready | HDFSClient", "fluid.incubate.fleet.parameter_server.distribute_transpiler": "| fleet"},
    "fluid.input": {"fluid.small_modules": "embedding one_hot | Variable"},
    "fluid.install_check": {"fluid.debugger": "run_check | Layer Program SimpleLayer cpu_places program_guard"},
    "fluid.layers.device": {"fluid.layers.utils": "| LayerHelper deprecated get_places"},
    "fluid.lod_tensor": {"executor.lod_tensor": "create_lod_tensor create_random_int_lodtensor"},
    "fluid.log_helper": {"fluid.small_modules": "get_logger"},
    "fluid.multiprocess_utils": {"reader.watchdog": "CleanupFuncRegistrar multiprocess_queue_set | _cleanup"},
    "fluid.net_drawer": {"framework": "Operator Program", "fluid.graphviz": "Graph Node crepr OP_STYLE VAR_STYLE GRAPH_STYLE GRAPH_ID logger unique_id draw_node draw_edge parse_graph draw_graph"},
    "fluid.parallel_executor": {"executor.parallel.compiler": "ParallelExecutor", "executor.parallel.strategies": "BuildStrategy ExecutionStrategy"},
    "fluid.proto.framework_pb2": {"fluid.proto": "INT FLOAT STRING INTS FLOATS STRINGS BOOLEAN BOOLEANS BLOCK LONG BLOCKS LONGS AttrType BlockDesc OpDesc OpProto ProgramDesc VarDesc VarType Version"},
    "fluid.trainer_factory": {"fluid.trainer_desc": "FetchHandlerMonitor TrainerFactory local_logger", "executor": "FetchHandler"},
    "fluid.transpiler.details.checkport": {"fluid.transpiler.details": "string_types wait_server_ready"},
    "fluid.transpiler.details.program_utils": {"base.dtypes": "VarType", "framework": "Block Operator Parameter Program Variable", "fluid.transpiler.details": "delete_ops find_op_by_input_arg find_op_by_output_arg get_indent_space variable_to_code op_to_code block_to_code program_to_code"},
    "fluid.transpiler.details.ufind": {"fluid.transpiler.details": "UnionFind"},
    "fluid.transpiler.details.vars_distributed": {"framework": "Variable", "fluid.transpiler.details": "VarStruct VarDistributed VarsDistributed"},
    "fluid.transpiler.ps_dispatcher": {"fluid.transpiler.details": "HashName PSDispatcher RoundRobin"},
    "fluid.wrapped_decorator": {"fluid.small_modules": "signature_safe_contextmanager wrap_decorator"},
    "paddle.batch": {"reader": "batch"},
    "paddle.callbacks": {"paddle.hapi.callbacks": "Callback EarlyStopping LRScheduler ModelCheckpoint ProgBarLogger ReduceLROnPlateau"},
    "paddle.check_import_scipy": {"paddle.small_modules": "check_import_scipy"},
    "paddle.complex.helper": {"paddle.complex": "complex_variable_exists is_complex is_real"},
    "paddle.complex.tensor": {},
    "paddle.complex.tensor.linalg": {"paddle.complex": "matmul | complex_variable_exists", "framework.variable": "| ComplexVariable"},
    "paddle.complex.tensor.manipulation": {"paddle.complex": "reshape transpose", "framework.variable": "| ComplexVariable"},
    "paddle.complex.tensor.math": {"paddle.complex": "elementwise_add elementwise_div elementwise_mul elementwise_sub kron sum trace | complex_variable_exists", "framework.variable": "| ComplexVariable"},
    "paddle.device": {"paddle.modes": "CPUPlace CUDAPinnedPlace CUDAPlace get_cudnn_version get_device is_compiled_with_cuda is_compiled_with_npu is_compiled_with_xpu set_device"},
    "paddle.distributed.fs_wrapper": {"distributed.files": "BDFS FS LocalFS"},
    "paddle.incubate": {"paddle.incubate": "hapi"},
    "paddle.incubate.hapi": {"paddle.incubate.hapi": "distributed vision"},
    "paddle.incubate.hapi.distributed": {"paddle.hapi.model": "DistributedBatchSampler"},
    "paddle.incubate.hapi.vision": {"paddle.incubate.hapi.vision": "transforms", "paddle.vision": "BrightnessTransform ColorJitter ContrastTransform HueTransform SaturationTransform"},
    "paddle.incubate.hapi.vision.transforms": {"paddle.incubate.hapi.vision.transforms": "transforms", "paddle.vision": "BrightnessTransform ColorJitter ContrastTransform HueTransform SaturationTransform"},
    "paddle.incubate.hapi.vision.transforms.transforms": {"paddle.vision": "BrightnessTransform ColorJitter ContrastTransform HueTransform SaturationTransform"},
    "paddle.nn.functional.vision": {"paddle.nn.functional.common": "affine_grid grid_sample"},
    "paddle.nn.layer.activation": {"paddle.nn.layer.of_functions": "CELU ELU GELU GLU Hardshrink Hardsigmoid Hardswish Hardtanh LeakyReLU LogSigmoid LogSoftmax Maxout Mish ReLU ReLU6 SELU Sigmoid Silu Softmax Softplus Softshrink Softsign Swish Tanh Tanhshrink ThresholdedReLU PReLU"},
    "paddle.nn.layer.container": {"paddle.nn.layer.common": "LayerDict LayerList ParameterList Sequential"},
    "paddle.nn.layer.loss": {"paddle.nn.layer.of_functions": "BCELoss BCEWithLogitsLoss CosineEmbeddingLoss CrossEntropyLoss HingeEmbeddingLoss KLDivLoss L1Loss MSELoss MarginRankingLoss NLLLoss SmoothL1Loss TripletMarginLoss"},
    "paddle.nn.layer.pooling": {"paddle.nn.layer.of_functions": "AdaptiveAvgPool1D AdaptiveAvgPool2D AdaptiveAvgPool3D AdaptiveMaxPool1D AdaptiveMaxPool2D AdaptiveMaxPool3D AvgPool1D AvgPool2D AvgPool3D MaxPool1D MaxPool2D MaxPool3D"},
    "paddle.reader": {"reader": "ComposeNotAligned buffered cache chain compose firstn map_readers multiprocess_reader shuffle xmap_readers", "paddle.reader": "creator decorator"},
    "paddle.reader.creator": {"reader": "np_array recordio text_file"},
    "paddle.reader.decorator": {"reader": "ComposeNotAligned buffered cache chain compose firstn map_readers multiprocess_reader shuffle xmap_readers", "reader.threaded": "XmapEndSignal"},
    "paddle.regularizer": {"paddle.small_modules": "L1Decay L2Decay"},
    "paddle.static.input": {"paddle.static": "InputSpec data"},
    "paddle.sysconfig": {"paddle.small_modules": "get_include get_lib"},
    "paddle.utils.dlpack": {"paddle.utils": "from_dlpack to_dlpack"},
    "paddle.utils.plotcurve": {"paddle.utils.plot": "main plot_paddle_curve"},
    "paddle.utils.preprocess_img": {"paddle.utils.preprocess_util": "DiskImage ImageClassificationDatasetCreater | Dataset DatasetCreater Label get_label_set_from_dir list_images save_file", "paddle.utils.image_util": "resize_image | crop_img"},
    "paddle.version": {"paddle.small_modules": "commit full_version istaged major minor mkl patch rc show with_mkl"},
    "paddle.vision.datasets": {"paddle.vision": "MNIST Cifar10 Cifar100"},
    "paddle.vision.transforms": {"paddle.vision": "Compose Normalize RandomCrop RandomHorizontalFlip ToTensor Transpose normalize to_tensor"},
}
# fmt: on
"""Module -> the module that defines its names -> these names. A module with others below it is a package.

Names behind `|` are not in `__all__`; `old=new` is a name with another one where it is defined; under the module's own
name stand modules below it. A module of a file that has such modules below it sets `__path__`.
"""


class _ViewLoader(Loader):
    """Fills a module with the names that the table lists for it."""

    def exec_module(self, module: ModuleType) -> None:
        from .. import missing  # which installs the finder

        view = VIEWS[module.__name__.removeprefix(_ROOT)]
        module.__dict__["__getattr__"] = missing.reporter(module.__name__)
        exported: list[str] = []
        for home, names in view.items():
            source = importlib.import_module(_ROOT + home)
            public, _, others = names.partition("|")
            for entry in (*public.split(), *others.split()):
                name, _, there = entry.partition("=")
                setattr(module, name, getattr(source, there or name))
            exported += (entry.partition("=")[0] for entry in public.split())
        homes = ", ".join(f"`{_ROOT}{home}`" for home in view)
        module.__doc__ = f"`{fluid_name(module.__name__)}`: names of {homes}."
        module.__dict__["__all__"] = exported
        keep_functions(module.__name__)


class _MirrorLoader(SourceFileLoader):
    """Loads a module of a mirror, which explains names that it lacks unless it has a `__getattr__` of its own."""

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        from .. import missing  # which installs the finder

        module.__dict__.setdefault("__getattr__", missing.reporter(module.__name__))


class NameFinder(MetaPathFinder):
    """Finds the modules of `VIEWS` and of `MIRRORS`, and those of `fluidlite.fluid` by their names without `fluid`."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of a row of `VIEWS` or of an alias of a module of `fluidlite.fluid`; None for other names."""
        short = fullname.removeprefix(_ROOT)
        if short == fullname:
            return None
        if short in VIEWS:
            package = any(view.startswith(short + ".") for view in VIEWS)
            return ModuleSpec(fullname, _ViewLoader(), is_package=package)
        top = short.partition(".")[0]
        if top in MIRRORS:
            spec = PathFinder.find_spec(fullname, path, target)
            if spec is not None and isinstance(spec.loader, SourceFileLoader):
                spec.loader = _MirrorLoader(fullname, spec.loader.path)
            return spec
        if top in TOP:
            return None
        from .. import missing  # which installs the finder

        real = canonical(fullname)
        found = missing.spec_of(real)
        if found is None:
            return None
        return ModuleSpec(
            fullname, AliasLoader(real), is_package=found.submodule_search_locations is not None
        )


def install() -> None:
    """Have Python find these modules."""
    sys.meta_path.insert(0, NameFinder())
