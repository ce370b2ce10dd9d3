"""Lists of Fluid's passes, for scripts that change them. Nothing here depends on them: plans decide what is fused."""

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

KNOWN_PASSES = frozenset(
    (
        "add_reader_dependency_pass all_reduce_deps_pass all_reduce_mode_multi_devices_pass "
        "async_multi_devices_pass attention_lstm_fuse_pass backward_optimizer_op_deps_pass "
        "buffer_shared_cross_op_memory_reuse_pass buffer_shared_inplace_pass coalesce_grad_tensor_pass "
        "conditional_block_op_eager_deletion_pass conv3d_bias_mkldnn_fuse_pass conv_activation_mkldnn_fuse_pass "
        "conv_affine_channel_fuse_pass conv_bias_mkldnn_fuse_pass conv_bn_fuse_pass "
        "conv_concat_relu_mkldnn_fuse_pass conv_elementwise_add2_act_fuse_pass conv_elementwise_add_act_fuse_pass "
        "conv_elementwise_add_fuse_pass conv_elementwise_add_mkldnn_fuse_pass "
        "conv_eltwiseadd_affine_channel_fuse_pass conv_eltwiseadd_bn_fuse_pass conv_leaky_relu_mkldnn_fuse_pass "
        "conv_relu6_mkldnn_fuse_pass conv_relu_mkldnn_fuse_pass conv_swish_mkldnn_fuse_pass "
        "conv_transpose_bias_mkldnn_fuse_pass conv_transpose_bn_fuse_pass conv_transpose_eltwiseadd_bn_fuse_pass "
        "cpu_quantize_pass cpu_quantize_placement_pass cpu_quantize_squash_pass delete_quant_dequant_op_pass "
        "depthwise_conv_mkldnn_pass dist_multi_devices_pass eager_deletion_pass embedding_fc_lstm_fuse_pass "
        "fc_elementwise_layernorm_fuse_pass fc_fuse_pass fc_gru_fuse_pass fc_lstm_fuse_pass fc_mkldnn_pass "
        "fuse_adam_op_pass fuse_all_reduce_op_pass fuse_bn_act_pass fuse_elewise_add_act_pass fuse_momentum_op_pass "
        "fuse_relu_depthwise_conv_pass fuse_sgd_op_pass graph_to_program_pass graph_viz_pass "
        "identity_scale_op_clean_pass is_test_pass lock_free_optimize_pass matmul_transpose_reshape_fuse_pass "
        "mkldnn_inplace_pass mkldnn_placement_pass modify_op_lock_and_record_event_pass mul_gru_fuse_pass "
        "mul_lstm_fuse_pass multi_batch_merge_pass multi_devices_check_pass multi_devices_print_pass "
        "multihead_matmul_fuse_pass quant_conv2d_dequant_fuse_pass recurrent_op_eager_deletion_pass "
        "reduce_mode_multi_devices_pass reference_count_pass repeated_fc_relu_fuse_pass runtime_context_cache_pass "
        "scale_matmul_fuse_pass seq_concat_fc_fuse_pass seqconv_eltadd_relu_fuse_pass seqpool_concat_fuse_pass "
        "seqpool_cvm_concat_fuse_pass sequential_execution_pass shuffle_channel_detect_pass "
        "simplify_with_basic_ops_pass skip_layernorm_fuse_pass squared_mat_sub_fuse_pass sync_batch_norm_pass "
        "transpose_flatten_concat_fuse_pass while_op_eager_deletion_pass "
    ).split()
)
"""Those of which `fluid.core.get_pass` makes something."""


class PaddlePassBuilder:
    """Names of passes (`fluid.core.PaddlePassBuilder`); they can be asked for and changed, without effect."""

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
        """Take all passes of this name away; there may be none."""
        self._passes = [other for other in self._passes if other != name]

    def append_analysis_pass(self, name: str) -> None:
        self._analysis.append(name)

    def turn_on_debug(self) -> None:
        """Put a pass that draws the graph behind each."""
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
    """What MKL-DNN's quantisation would be told (`fluid.core.MkldnnQuantizerConfig`); nothing is quantised here."""

    def __init__(self, other: MkldnnQuantizerConfig | None = None) -> None:
        """`other` is accepted: there is nothing to copy."""

    def set_quant_data(self, data: Sequence[object]) -> None:
        """Accepted."""

    def set_quant_batch_size(self, size: int) -> None:
        """Accepted."""

    def set_enabled_op_types(self, types: Iterable[str]) -> None:
        """Accepted."""
