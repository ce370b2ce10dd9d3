"""Lists of Fluid's passes, for scripts that change them; without effect, since plans determine fusions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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
