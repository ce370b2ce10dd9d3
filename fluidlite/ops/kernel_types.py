"""For which element types Fluid 1.8 has kernels, on the CPU; and what happens to an operator that gets others than its
program was built with, because something else was fed than `fluid.layers.data` declared.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from ..base.dtypes import FLOATS, VarType, to_numpy
from .registry import GRAD, OpView

Kinds = frozenset[VarType]

_ANY: Kinds = FLOATS | frozenset(VarType[name] for name in "BOOL UINT8 INT8 INT16 INT32 INT64".split())
"""Of inputs whose elements are not read, or are copied whatever they are."""

_TABLE = {
    "INT32 INT64 FP32 FP64": """
        abs argsort cross cumsum diag diag_embed dot elementwise_add elementwise_div elementwise_max
        elementwise_min elementwise_mod elementwise_mul elementwise_pow elementwise_sub equal equal_reduce exp
        get_tensor_from_selected_rows greater_equal greater_than increment is_empty isfinite isinf isnan
        less_equal less_than meshgrid not_equal pad partial_concat partial_sum prroi_pool prroi_pool_grad
        pyramid_hash_grad range reduce_max reduce_mean reduce_min reduce_prod reduce_sum reshape2_grad roll
        sequence_concat sequence_pad sequence_reshape sequence_reshape_grad shape space_to_depth square stack
        sum trace transpose2 tril_triu unique unique_with_counts unstack
    """,
    "FP32": """
        box_decoder_and_assign clip_by_norm conv_shift cos_sim decayed_adagrad deformable_conv_v1
        dgc_clip_by_norm fake_channel_wise_quantize_abs_max fake_quantize_abs_max ftrl hinge_loss im2sequence
        l1_norm log_loss lrn margin_rank_loss match_matrix_tensor minus modified_huber_loss
        moving_average_abs_max_scale proximal_adagrad proximal_gd quantize rank_loss rmsprop
        roi_perspective_transform row_conv sequence_conv sequence_pool sequence_topk_avg_pooling
        smooth_l1_loss split_byref squared_l2_distance squared_l2_norm truncated_gaussian_random var_conv_2d
        var_conv_2d_grad
    """,
    "any": """
        array_to_lod_tensor fill_constant_batch_size_like fill_zeros_like2 gaussian_random_batch_size_like
        lod_rank_table lod_tensor_to_array masked_select merge_lod_tensor_infer print read_from_array
        reorder_lod_tensor_by_rank rnn_memory_helper uniform_random_batch_size_like write_to_array
    """,
    "INT32 INT64": """
        ctc_align elementwise_floordiv gather_tree hash mean_iou randperm sequence_enumerate sequence_erase
        shard_index
    """,
    "BOOL": "logical_and logical_not logical_or logical_xor reduce_all reduce_any",
    "FP32 FP64": """
        affine_grid_grad anchor_generator batch_norm_grad pad_grad psroi_pool_grad trilinear_interp_grad
    """,
    "INT8 INT32 INT64 FP32 FP64": "flatten flatten2 squeeze squeeze2 unsqueeze unsqueeze2_grad",
    "BOOL INT32 INT64 FP32 FP64": "expand_as fill_zeros_like flip where_index",
    "INT32 INT64 FP16 FP32 FP64": "eye kron square_grad_grad unbind",
    "FP16 FP32 FP64": "elu_grad_grad erf sqrt_grad_grad",
    "BOOL INT32 INT64 FP16 FP32 FP64": "assign fill_any_like",
    "INT32 FP32 FP64": "roi_align roi_pool",
    "INT64": "chunk_eval edit_distance",
    "UINT8 INT16 INT32 INT64 FP32 FP64": "arg_max arg_min",
    "UINT8 INT8": "dequantize requantize",
    "BOOL INT32 FP32 FP64": "size",
    "BOOL INT32 INT64 FP32": "assign_value",
    "BOOL UINT8 INT32 INT64 FP16 FP32 FP64": "cast",
    "BOOL UINT8 INT32 INT64 FP32 FP64": "reverse",
    "INT32": "seed",
    "UINT8 FP32 FP64": "trilinear_interp",
    "UINT8 INT32 INT64 FP32 FP64": "sequence_reverse",
    "UINT8 INT8 INT16 INT32 INT64 FP32 FP64": "scale",
    "INT32 INT64 FP32 FP64; X: any": """
        crop_tensor_grad lod_reset_grad meshgrid_grad pad_constant_like partial_concat_grad partial_sum_grad
        reduce_mean_grad reduce_sum_grad roll_grad sequence_concat_grad sequence_pad_grad space_to_depth_grad
    """,
    "FP32 FP64; X: any": """
        center_loss_grad crop_grad cvm_grad kldiv_loss_grad mean_grad sequence_softmax_grad unfold_grad
    """,
    "FP32 FP64; Label: INT64": "bpr_loss center_loss cross_entropy2 cross_entropy_grad nll_loss",
    "INT32 INT64 FP32 FP64; X Y: any": """
        elementwise_add_grad elementwise_sub_grad sequence_expand_as_grad sequence_expand_grad
    """,
    "FP32 FP64; Ids: INT64": "fused_embedding_fc_lstm fused_embedding_seq_pool lookup_table_v2",
    "INT32 INT64 FP32 FP64; Y: any": "lod_reset sequence_expand sequence_expand_as",
    "INT32 INT64; ShapeTensorList: INT32 INT64": "gaussian_random randint uniform_random",
    "INT8 INT32 INT64 FP32 FP64; X: any": "flatten_grad squeeze_grad unsqueeze_grad",
    "FP32 FP64; Bias: any": "conv2d layer_norm_grad",
    "FP32 FP64; CVM: any": "cvm fusion_seqpool_cvm_concat",
    "FP32 FP64; Image: any": "density_prior_box prior_box",
    "FP32 FP64; Label Length: INT64": "crf_decoding linear_chain_crf",
    "FP32 FP64; Label: INT64 FP32 FP64": "cross_entropy softmax_with_cross_entropy",
    "FP32; InScale: any": """
        fake_quantize_dequantize_moving_average_abs_max fake_quantize_moving_average_abs_max
    """,
    "INT32 INT64 FP32 FP64; DOut X Y: any": "elementwise_add_grad_grad elementwise_sub_grad_grad",
    "INT32 INT64 FP32 FP64; Index: INT32 INT64": "index_sample index_select",
    "INT32 INT64; depth_tensor: INT32": "one_hot one_hot_v2",
    "UINT8 INT32 INT64 FP32 FP64; Index: INT32 INT64": "gather scatter_nd_add",
    "any; Mask: BOOL": "merge_lod_tensor split_lod_tensor",
    "BOOL INT32 INT64 FP32 FP64; ExpandTimes expand_times_tensor: INT32": "expand",
    "BOOL UINT8 INT32 INT64 FP32 FP64; Index: INT32 INT64": "gather_nd",
    "FP32 FP64; Beta1Tensor Beta2Tensor: FP32": "adam",
    "FP32 FP64; Bias DDBias: any": "conv2d_grad_grad",
    "FP32 FP64; Bias Input: any": "gru_unit_grad",
    "FP32 FP64; EdgeSet: INT32": "tree_conv",
    "FP32 FP64; FgNum Label: INT32": "sigmoid_focal_loss",
    "FP32 FP64; GTLabel GTMatchMask: INT32": "yolov3_loss_grad",
    "FP32 FP64; GTLabel: INT32": "yolov3_loss",
    "FP32 FP64; GtClasses IsCrowd: INT32": "generate_proposal_labels",
    "FP32 FP64; GtLabels IsCrowd: INT32": "retinanet_target_assign",
    "FP32 FP64; HasState PosCount: INT32": "detection_map",
    "FP32 FP64; ImgSize: INT32": "yolo_box",
    "FP32 FP64; Indices Label: INT64": "accuracy",
    "FP32 FP64; Indices Labels: INT32": "precision_recall",
    "FP32 FP64; Indices: INT32": "unpool",
    "FP32 FP64; IsCrowd: INT32": "rpn_target_assign",
    "FP32 FP64; K: INT32": "top_k",
    "FP32 FP64; Label PathCode PathTable: INT64": "hierarchical_sigmoid",
    "FP32 FP64; Labels: INT64": "sample_logits",
    "FP32 FP64; LearningRate: BOOL INT32 INT64 FP16 FP32 FP64": "sgd",
    "FP32 FP64; Mask: UINT8": "dropout_grad",
    "FP32 FP64; MatchIndices: INT32": "mine_hard_examples",
    "FP32 FP64; MomentumTensor: FP32": "batch_norm",
    "FP32 FP64; Num: INT32": "linspace",
    "FP32 FP64; Out X: any": "transpose_grad",
    "FP32 FP64; OutputShape: INT32": "affine_grid",
    "FP32 FP64; QueryID: INT64": "positive_negative_pair",
    "FP32 FP64; Seed: INT32": "dropout",
    "FP32 FP64; bias: any": "data_norm_grad",
    "FP32 FP64; in_num_accumulates in_num_updates in_old_num_accumulates: INT64": "average_accumulates",
    "FP32; GtClasses IsCrowd LabelsInt32: INT32": "generate_mask_labels",
    "FP32; Ids: INT64": "lookup_table_dequant",
    "FP32; Iter: INT64": "fake_quantize_range_abs_max",
    "FP32; Label StatNeg StatPos: INT64": "auc",
    "FP32; Logits LogitsLength WarpCTCGrad: any": "warpctc_grad",
    "FP32; Out2InIdx Out2InWeights: any": "roi_perspective_transform_grad",
    "FP32; X Y: any": "squared_l2_distance_grad",
    "INT32 FP32 FP64; Argmax: INT64": "roi_pool_grad",
    "INT32 FP32 FP64; X: any": "roi_align_grad",
    "INT32 FP32; MatchIndices NegIndices: INT32": "target_assign",
    "INT32 INT64 FP16 FP32 FP64; AxisTensor SectionsTensorList: INT32 INT64": "split",
    "INT32 INT64 FP32 FP64; AxisTensor: INT32 INT64": "concat",
    "INT32 INT64 FP32 FP64; Condition: BOOL": "where",
    "INT32 INT64 FP32 FP64; EndsTensor EndsTensorList StartsTensor StartsTensorList StridesTensor "
    "StridesTensorList: INT32": "strided_slice",
    "INT32 INT64 FP32 FP64; EndsTensor EndsTensorList StartsTensor StartsTensorList: INT32": "slice",
    "INT32 INT64 FP32 FP64; FactorTensor: FP32": "pow",
    "INT32 INT64 FP32 FP64; Filter_tag Ins_tag: INT64": "filter_by_instag",
    "INT32 INT64 FP32 FP64; Ids: INT32": "multiplex",
    "INT32 INT64 FP32 FP64; Ids: INT32 INT64": "scatter",
    "INT32 INT64 FP32 FP64; Ids: INT64": "sequence_scatter",
    "INT32 INT64 FP32 FP64; Input: any": "trace_grad",
    "INT32 INT64 FP32 FP64; Length Offset: INT64": "sequence_slice",
    "INT32 INT64 FP32 FP64; Length X: any": "sequence_unpad_grad",
    "INT32 INT64 FP32 FP64; Length: INT64": "sequence_unpad",
    "INT32 INT64 FP32 FP64; MaxLenTensor: INT32": "sequence_mask",
    "INT32 INT64 FP32 FP64; Offsets OffsetsTensor Shape ShapeTensor: INT32": "crop_tensor",
    "INT32 INT64 FP32 FP64; Out Out@GRAD: any": "reshape_grad",
    "INT32 INT64 FP32 FP64; Out@GRAD: any": "pad_constant_like_grad",
    "INT32 INT64 FP32 FP64; Paddings: INT32": "pad2d",
    "INT32 INT64 FP32 FP64; Seed: INT64": "shuffle_batch",
    "INT32 INT64 FP32 FP64; Shape ShapeTensor: INT32": "reshape",
    "INT32 INT64 FP32 FP64; TrainerId: INT64": "ref_by_trainer_id",
    "INT32 INT64 FP32 FP64; X target_tensor: any": "expand_as_grad",
    "INT32 INT64; TreeInfo: INT32 INT64": "tdm_child",
    "INT32 INT64; ValueTensor: any": "fill_constant",
    "INT32 INT64; X: INT32 INT64": "tdm_sampler",
    "INT64; pre_scores scores: FP32 FP64": "beam_search",
    "INT8 FP32 FP64; Ids: INT64": "lookup_table",
    "INT8 INT32 INT64 FP32 FP64; AxesTensor AxesTensorList: INT32 INT64": "unsqueeze2",
    "INT8; Dict: FP32": "dequantize_log",
    "INT8; Scale: FP32": "dequantize_abs_max",
    "UINT8 INT16 INT32 FP32 FP64; Seed: INT64": "random_crop",
    "UINT8 INT8 INT32 INT64 FP32 FP64; Shape ShapeTensor: INT32": "reshape2",
    "FP32 FP64; Ids: INT64; W: any": "lookup_table_grad lookup_table_v2_grad",
    "FP32 FP64; Mask: INT32; X: any": "max_pool2d_with_index_grad max_pool3d_with_index_grad",
    "INT32 INT64 FP32 FP64; Index: INT32 INT64; X: any": "index_sample_grad index_select_grad",
    "UINT8 FP32 FP64; Scale: FP32; OutSize SizeTensor: INT32": "bilinear_interp nearest_interp",
    "UINT8 INT32 INT64 FP32 FP64; Index: INT32 INT64; X: any": "gather_grad gather_nd_grad",
    "FP32 FP64; Indices: INT64; X: any": "top_k_grad",
    "FP32 FP64; Label Length: INT64; Emission Transition: any": "linear_chain_crf_grad",
    "FP32 FP64; Label: INT64; CustomDistAlias: INT32": "nce",
    "FP32 FP64; Offsets: INT32; Y: any": "crop",
    "FP32 FP64; Paddings: INT32; X: any": "pad2d_grad",
    "FP32 FP64; Scale: FP32; OutSize SizeTensor: INT32": "bicubic_interp",
    "FP32; Label: INT32; LabelLength LogitsLength: INT64": "warpctc",
    "FP32; MaxIndex: INT32; X: any": "sequence_pool_grad",
    "FP32; pos: INT32; COLUMN ROW: any": "sequence_topk_avg_pooling_grad",
    "INT32 INT64 FP32 FP64; AxisTensor: INT32 INT64; X: any": "concat_grad",
    "INT32 INT64 FP32 FP64; Condition: BOOL; X Y: any": "where_grad",
    "INT32 INT64 FP32 FP64; EndsTensor EndsTensorList StartsTensor StartsTensorList StridesTensor "
    "StridesTensorList: INT32; Input: any": "strided_slice_grad",
    "INT32 INT64 FP32 FP64; EndsTensor EndsTensorList StartsTensor StartsTensorList: INT32; Input: any": """
        slice_grad
    """,
    "INT32 INT64 FP32 FP64; ExpandTimes expand_times_tensor: INT32; X: any": "expand_grad",
    "INT32 INT64 FP32 FP64; Ids: INT32 INT64; Updates: any": "scatter_grad",
    "INT32 INT64 FP32 FP64; Ids: INT32; X: any": "multiplex_grad",
    "INT32 INT64 FP32 FP64; Ids: INT64; Updates: any": "sequence_scatter_grad",
    "INT32 INT64 FP32 FP64; Indices: INT64; X: any": "argsort_grad",
    "INT32 INT64 FP32 FP64; Length Offset: INT64; X: any": "sequence_slice_grad",
    "UINT8 INT32 INT64 FP32 FP64; Index: INT32 INT64; Updates: any": "scatter_nd_add_grad",
    "FP32 FP64; OutSize SizeTensor: INT32; Scale: FP32; X: any": """
        bicubic_interp_grad bilinear_interp_grad nearest_interp_grad
    """,
    "FP32; CustomDistAlias: INT32; SampleLabels: INT64; Bias Label: any": "nce_grad",
    "INT32 INT64 FP32 FP64; LossWeight: FP32; IndexMap: INT64; Ins: any": "filter_by_instag_grad",
}
"""The operators by what they take: the types of their inputs, which are of one type, and then inputs that have types of
their own. An operator that is not here takes "FP32 FP64", a gradient operator what its operator does, and its inputs
that are not read are any.

Recorded from Paddle 1.8.5, which ran every operator with every type in every slot: tests/ops/kernel_types.json.gz.
"""


class Rule(NamedTuple):
    """The element types that an operator accepts: one of `kinds` for all inputs but those in `others`."""

    kinds: Kinds
    others: dict[str, Kinds]


def _kinds(text: str) -> Kinds:
    return _ANY if text == "any" else frozenset(VarType[name] for name in text.split())


def _rule(text: str) -> Rule:
    kinds, *rest = text.split("; ")
    others = [part.split(": ") for part in rest]
    return Rule(_kinds(kinds), {slot: _kinds(types) for slots, types in others for slot in slots.split()})


_RULES = {op_type: _rule(text) for text, types in _TABLE.items() for op_type in types.split()}
_DEFAULT = _rule("FP32 FP64")
_WHOLE = _kinds("UINT8 INT8 INT16 INT32 INT64")


def rule_of(op_type: str) -> Rule:
    """The element types that an operator takes."""
    found = _RULES.get(op_type)
    if found is None and op_type.endswith("_grad"):
        return rule_of(op_type.removesuffix("_grad"))
    return _DEFAULT if found is None else found


def shape_only_slots(op_type: str) -> frozenset[str]:
    """The inputs of an operator whose elements it does not read."""
    return frozenset(slot for slot, kinds in rule_of(op_type).others.items() if kinds == _ANY)


@cache
def gradient_kinds(op_type: str) -> Kinds:
    """The element types that may have a gradient through an operator: of its inputs, or of what it makes.

    Floats may always; integers and booleans where there are kernels for them, which cut gradients to such numbers.
    """
    return FLOATS | rule_of(op_type + "_grad").kinds


def check(op: OpView, declared: Callable[[str], VarType | None]) -> tuple[VarType | None, bool]:
    """Raise OperatorError unless Fluid computes `op` on inputs of these types.

    `op` has the types of what it really gets, `declared` says those that the program was built with. Returns the type
    that is computed in, and whether an input that is not read has another one. Where Fluid reads integers of one size,
    as labels and places are, all sizes are taken.
    """
    rule = rule_of(op.type)
    main: tuple[str, VarType, VarType] | None = None
    shape_only: set[VarType] = set()
    definition = op.definition
    free = frozenset() if op.type in _RULES else definition.shape_only
    # Gradient operators compute in the type of the gradients that they get.
    for slot in sorted(definition.input_slots, key=lambda slot: not slot.name.endswith(GRAD)):
        kinds = rule.others.get(slot.name)
        if rule.kinds == _ANY or slot.name == "XShape" or slot.name in free:
            kinds = kinds or _ANY
        for name in op.inputs.get(slot.name, ()):
            before, now = declared(name), op.meta.dtype(name)
            if before is None:
                continue
            if kinds == _ANY:
                shape_only.add(now)
            elif kinds is not None:
                _require(op, slot.name, now, kinds)
            elif main is None:
                main = name, before, now
                _require(op, slot.name, now, rule.kinds)
            elif now != main[2] and (before == main[1] or now != before):
                raise op.fail(
                    f"its inputs must be of one data type, but {main[0]} is {to_numpy(main[2])} and {name} is "
                    f"{to_numpy(now)}; feed what the program declares, or cast"
                )
    return (None, False) if main is None else (main[2], bool(shape_only - {main[2]}))


def _require(op: OpView, slot: str, now: VarType, kinds: Kinds) -> None:
    if now in kinds or (now in _WHOLE and len(kinds) == 1 and kinds <= _WHOLE):
        return
    names = ", ".join(str(to_numpy(kind)) for kind in sorted(kinds))
    raise op.fail(f"does not have a kernel for {slot} of {to_numpy(now)}, only for {names}")
