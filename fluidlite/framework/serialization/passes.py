"""Passes over graphs by their names, and lists of them."""

from __future__ import annotations

import os
from typing import Any

from ...base.errors import EnforceNotMet
from .descs import ProgramDesc
from .ir_graph import Graph, nodes_of

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
"""The names that `fluid.core.get_pass` accepts."""


class Pass:
    """A step of Fluid's optimizer of graphs, by its name (`fluid.core.Pass`).

    Plans decide what is fused, so that applying most of them changes nothing; `graph_viz_pass` writes the graph to the
    file of its attribute `graph_viz_path`, and `is_test_pass` lets operators compute as in inference. What
    `multi_batch_merge_pass` does among the passes of a `BuildStrategy` see there.
    """

    def __init__(self, type: str = "") -> None:
        self._type = type
        self._attrs: dict[str, Any] = {}

    def type(self) -> str:
        return self._type

    def has(self, name: str) -> bool:
        """Whether an attribute was set."""
        return name in self._attrs

    def set(self, name: str, value: Any) -> None:
        """Set an attribute; EnforceNotMet if it was set before."""
        if name in self._attrs:
            raise EnforceNotMet(f"Attribute {name} already set in the pass {self._type}")
        self._attrs[name] = value

    def set_not_owned(self, name: str, value: ProgramDesc) -> None:
        """Set an attribute that is a program."""
        self.set(name, value)

    def _needed(self, name: str) -> Any:
        """The value of an attribute; EnforceNotMet if it was not set."""
        if name not in self._attrs:
            raise EnforceNotMet(f"Required attribute {name} for pass < {self._type} > is not set.")
        return self._attrs[name]

    def apply(self, graph: Graph) -> None:
        """Do it to `graph`. EnforceNotMet if an attribute that it needs was not set."""
        if self._type == "graph_viz_pass":
            folder, name = os.path.split(self._needed("graph_viz_path"))
            nodes_of(graph).draw(folder or ".", name.removesuffix(".dot"))
        if self._type == "is_test_pass":
            for op in nodes_of(graph).all_op_nodes():
                if "is_test" in op._operator.definition.attrs:
                    op._operator._set_attr("is_test", True)


def get_pass(pass_type: str) -> Pass:
    """The pass of a name (`fluid.core.get_pass`); EnforceNotMet if Fluid has none."""
    if pass_type not in KNOWN_PASSES:
        raise EnforceNotMet(f"Pass {pass_type} has not been registered")
    return Pass(pass_type)


class PassBuilder:
    """A list of passes (`fluid.core.PassBuilder`)."""

    def __init__(self) -> None:
        self._passes: list[Pass] = []

    def all_passes(self) -> list[Pass]:
        return list(self._passes)

    def append_pass(self, pass_type: str) -> Pass:
        return self.insert_pass(len(self._passes), pass_type)

    def insert_pass(self, idx: int, pass_type: str) -> Pass:
        """Insert a new pass before number `idx`; EnforceNotMet if out of range."""
        if not 0 <= idx <= len(self._passes):
            raise EnforceNotMet(f"there are {len(self._passes)} passes, no place {idx} between them")
        result = get_pass(pass_type)
        self._passes.insert(idx, result)
        return result

    def remove_pass(self, idx: int) -> None:
        """Remove pass number `idx`; EnforceNotMet if out of range."""
        if not 0 <= idx < len(self._passes):
            raise EnforceNotMet(f"there are {len(self._passes)} passes, no number {idx}")
        del self._passes[idx]
