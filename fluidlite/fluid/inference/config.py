"""Configurations of predictors: `AnalysisConfig`, `NativeConfig`, and lists of Fluid's passes, which have no effect."""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...backend import device_at
from ...base.errors import EnforceNotMet, NotSupportedError
from ...base.place import CPUPlace, CUDAPlace, Place
from .tensors import Named

_CPU = (
    "simplify_with_basic_ops_pass attention_lstm_fuse_pass seqconv_eltadd_relu_fuse_pass seqpool_cvm_concat_fuse_pass "
    "fc_lstm_fuse_pass mul_lstm_fuse_pass fc_gru_fuse_pass mul_gru_fuse_pass seq_concat_fc_fuse_pass fc_fuse_pass "
    "repeated_fc_relu_fuse_pass squared_mat_sub_fuse_pass conv_bn_fuse_pass conv_eltwiseadd_bn_fuse_pass "
    "conv_transpose_bn_fuse_pass conv_transpose_eltwiseadd_bn_fuse_pass is_test_pass runtime_context_cache_pass"
).split()
_ANALYSIS = (
    "ir_graph_build_pass ir_graph_clean_pass ir_analysis_pass ir_params_sync_among_devices_pass "
    "adjust_cudnn_workspace_size_pass inference_op_replace_pass ir_graph_to_program_pass"
).split()


class PaddlePassBuilder:
    """A list of names of passes, which can be changed without effect (`fluid.core.PaddlePassBuilder`)."""

    def __init__(self, passes: Iterable[str]) -> None:
        self._passes = list(passes)
        self._analysis = list(_ANALYSIS)

    def all_passes(self) -> list[str]:
        return list(self._passes)

    def analysis_passes(self) -> list[str]:
        return list(self._analysis)

    def set_passes(self, passes: Sequence[str]) -> None:
        self._passes = list(passes)

    def append_pass(self, name: str) -> None:
        self._passes.append(name)

    def insert_pass(self, index: int, name: str) -> None:
        self._passes.insert(index, name)

    def delete_pass(self, name: str) -> None:
        """Remove all passes of this name, if any."""
        self._passes = [other for other in self._passes if other != name]

    def append_analysis_pass(self, name: str) -> None:
        self._analysis.append(name)

    def turn_on_debug(self) -> None:
        """Insert a pass that draws the graph after each pass."""
        self._passes = [name for each in self._passes for name in (each, "graph_viz_pass")]

    def debug_string(self) -> str:
        return "Passes to apply:\n" + "".join(f"  - {name}\n" for name in self._passes)


class PassStrategy(PaddlePassBuilder):
    """The passes for a kind of device (`fluid.core.PassStrategy`); the switches are accepted."""

    def use_gpu(self) -> bool:
        return False

    def enable_cudnn(self) -> None:
        """Accepted."""

    def enable_mkldnn(self) -> None:
        """Accepted."""

    def enable_mkldnn_quantizer(self) -> None:
        """Accepted."""


class CpuPassStrategy(PassStrategy):
    """The passes of the CPU, or a copy of `other`."""

    def __init__(self, other: CpuPassStrategy | None = None) -> None:
        super().__init__(_CPU if other is None else other._passes)


class GpuPassStrategy(PassStrategy):
    """The same passes, or a copy of `other`."""

    def __init__(self, other: GpuPassStrategy | None = None) -> None:
        super().__init__(_CPU if other is None else other._passes)

    def use_gpu(self) -> bool:
        return True


class MkldnnQuantizerConfig:
    """Options of MKL-DNN's quantization, without effect (`fluid.core.MkldnnQuantizerConfig`)."""

    def __init__(self, other: MkldnnQuantizerConfig | None = None) -> None:
        """`other` is accepted: there is nothing to copy."""

    def set_quant_data(self, data: Sequence[object]) -> None:
        """Accepted."""

    def set_quant_batch_size(self, size: int) -> None:
        """Accepted."""

    def set_enabled_op_types(self, types: Iterable[str]) -> None:
        """Accepted."""


_log = logging.getLogger(__name__)


class EnginePrecision(Named):
    """Precisions of TensorRT engines, without effect here (`AnalysisConfig.Precision`)."""

    Float32 = 0
    Int8 = 1
    Half = 2


class NativeConfig:
    """The files of a model, for a predictor without further options (`fluid.core.NativeConfig`).

    `model_dir`, or `prog_file` and `param_file`; `use_gpu`, `device`; `specify_input_name`: inputs are taken by name,
    not by their order. `fraction_of_gpu_memory` is kept.
    """

    def __init__(self) -> None:
        self.model_dir = self.prog_file = self.param_file = ""
        self.use_gpu = self.specify_input_name = False
        self.device = 0
        self.fraction_of_gpu_memory = -1.0
        self._threads = 1

    def set_cpu_math_library_num_threads(self, number: int) -> None:
        """Stored without effect; the number of threads is a setting of the process (`fluid.core.set_num_threads`)."""
        self._threads = int(number)

    def cpu_math_library_num_threads(self) -> int:
        return self._threads


class AnalysisConfig:
    """A model and the options of its predictor (`fluid.core.AnalysisConfig`).

    `AnalysisConfig(folder)` of a model with parameters in separate files, `AnalysisConfig(program, parameters)` of one
    in two files, `AnalysisConfig(other)` for a copy, or `set_model` and `set_model_buffer` later.

    Programs run as plans, which fuse and share memory whatever is switched: the switches for optimisation, MKL-DNN,
    TensorRT, memory and logs are kept and can be asked for; they change no number.
    """

    Precision = EnginePrecision

    def __init__(self, model: str | AnalysisConfig = "", params: str = "") -> None:
        if isinstance(model, AnalysisConfig):
            self.__dict__.update(copy.deepcopy(model.__dict__))
            self._used = False
            return
        self._used = False
        self._dir = self._prog = self._params = ""
        self._buffers: tuple[bytes, bytes] | None = None
        self._gpu: int | None = None
        self._pool_mb = 100
        self._threads = 1
        self._switches: dict[str, bool] = {"ir_optim": True, "feed_fetch": True}
        self._passes: PassStrategy = CpuPassStrategy()
        self._quantizer: MkldnnQuantizerConfig | None = None
        self.set_model(*((model, params) if params else (model,)))

    # Where the model is.

    def set_model(self, model: str, params: str = "") -> None:
        """Set the folder of the model, or the files of the program and of all parameters."""
        self._dir, self._prog, self._params = ("", model, params) if params else (model, "", "")

    def set_model_buffer(self, program: bytes, program_size: int, params: bytes, params_size: int) -> None:
        """Set the contents of the files of the program and of all parameters, with their numbers of bytes."""
        self._buffers = _bytes(program)[:program_size], _bytes(params)[:params_size]

    def set_prog_file(self, path: str) -> None:
        self._prog = path

    def set_params_file(self, path: str) -> None:
        self._params = path

    def model_dir(self) -> str:
        return self._dir

    def prog_file(self) -> str:
        return self._prog

    def params_file(self) -> str:
        return self._params

    def model_from_memory(self) -> bool:
        return self._buffers is not None

    # Where it runs.

    def enable_use_gpu(self, memory_pool_init_size_mb: int, device_id: int = 0) -> None:
        """Run on a GPU; without one, on the CPU with a log message, as in Fluid."""
        self._pool_mb = int(memory_pool_init_size_mb)
        try:
            usable = device_at(CUDAPlace(device_id)) is not None
        except ValueError:
            usable = False
        if usable:
            self._gpu = int(device_id)
        else:
            _log.error("enable_use_gpu: there is no usable GPU %d, the CPU computes", device_id)

    def disable_gpu(self) -> None:
        self._gpu = None

    def use_gpu(self) -> bool:
        return self._gpu is not None

    def gpu_device_id(self) -> int:
        return self._gpu or 0

    def memory_pool_init_size_mb(self) -> int:
        return self._pool_mb

    def fraction_of_gpu_memory_for_pool(self) -> float:
        return 0.0

    def place(self) -> Place:
        """The place of the predictor."""
        return CPUPlace() if self._gpu is None else CUDAPlace(self._gpu)

    def set_cpu_math_library_num_threads(self, number: int) -> None:
        """Stored without effect; the number of threads is a setting of the process (`fluid.core.set_num_threads`)."""
        self._threads = int(number)

    def cpu_math_library_num_threads(self) -> int:
        return self._threads

    # Inputs and outputs.

    def switch_use_feed_fetch_ops(self, x: int = True) -> None:
        """False for `zero_copy_run`; stored without effect: predictors support both."""
        self._switches["feed_fetch"] = bool(x)

    def use_feed_fetch_ops_enabled(self) -> bool:
        return self._switches["feed_fetch"]

    def switch_specify_input_names(self, x: bool = True) -> None:
        """Switch whether `run` takes inputs by their names or by their order."""
        self._switches["names"] = bool(x)

    def specify_input_name(self) -> bool:
        return self._is("names")

    # Switches that change no number.

    def _is(self, name: str) -> bool:
        return self._switches.get(name, False)

    def switch_ir_optim(self, x: int = True) -> None:
        self._switches["ir_optim"] = bool(x)

    def ir_optim(self) -> bool:
        return self._switches["ir_optim"]

    def switch_ir_debug(self, x: int = True) -> None:
        """Accepted."""

    def enable_memory_optim(self) -> None:
        """Accepted: plans always share memory."""

    def enable_profile(self) -> None:
        """Accepted; `fluid.profiler` shows the times of runs."""

    def disable_glog_info(self) -> None:
        self._switches["quiet"] = True

    def glog_info_disabled(self) -> bool:
        return self._is("quiet")

    def enable_mkldnn(self) -> None:
        self._switches["mkldnn"] = True

    def mkldnn_enabled(self) -> bool:
        return self._is("mkldnn")

    def set_mkldnn_cache_capacity(self, capacity: int = 0) -> None:
        """Accepted."""

    def set_mkldnn_op(self, types: Iterable[str]) -> None:
        """Accepted."""

    def set_optim_cache_dir(self, path: str) -> None:
        """Accepted."""

    def enable_quantizer(self) -> None:
        """Accepted: nothing is quantised, results are those of float32."""
        self._quantizer = MkldnnQuantizerConfig()

    def quantizer_config(self) -> MkldnnQuantizerConfig:
        """The object made by `enable_quantizer`. Raises EnforceNotMet before that."""
        if self._quantizer is None:
            raise EnforceNotMet("MkldnnQuantizer was not enabled yet: call enable_quantizer first")
        return self._quantizer

    def enable_tensorrt_engine(
        self,
        workspace_size: int = 1 << 20,
        max_batch_size: int = 1,
        min_subgraph_size: int = 3,
        precision_mode: EnginePrecision = EnginePrecision.Float32,
        use_static: bool = False,
        use_calib_mode: bool = True,
    ) -> None:
        """Accepted without effect: there is no TensorRT, `tensorrt_engine_enabled` stays False."""
        _log.error("enable_tensorrt_engine: there is no TensorRT here, plans run the program")

    def tensorrt_engine_enabled(self) -> bool:
        return False

    def set_trt_dynamic_shape_info(
        self,
        min_input_shape: Mapping[str, Sequence[int]] | None = None,
        max_input_shape: Mapping[str, Sequence[int]] | None = None,
        optim_input_shape: Mapping[str, Sequence[int]] | None = None,
        disable_trt_plugin_fp16: bool = False,
    ) -> None:
        """Accepted."""

    def enable_lite_engine(self, *args: Any, **kwargs: Any) -> None:
        """NotSupportedError: there is no Paddle Lite here."""
        raise NotSupportedError("enable_lite_engine: there is no Paddle Lite here; leave it out")

    def lite_engine_enabled(self) -> bool:
        return False

    def pass_builder(self) -> PassStrategy:
        """Names of passes, which can be changed, without effect."""
        return self._passes

    def delete_pass(self, name: str) -> None:
        self._passes.delete_pass(name)

    def to_native_config(self) -> NativeConfig:
        """A `NativeConfig` of the same model."""
        native = NativeConfig()
        native.model_dir, native.prog_file, native.param_file = self._dir, self._prog, self._params
        native.use_gpu, native.device = self.use_gpu(), self.gpu_device_id()
        native.specify_input_name = self.specify_input_name()
        return native


def _bytes(data: bytes | str) -> bytes:
    return data.encode("utf8", "surrogateescape") if isinstance(data, str) else bytes(data)
