"""The element types that the layers of Fluid 1.8 accept while a program is built; any other is a TypeError there.

What an operator can compute is checked when a program runs, by `kernel_types`.
"""

from __future__ import annotations

from typing import Any

from ..base.dtypes import FLOATS, INTEGERS, VarType, to_numpy
from ..base.errors import wrong_type

_TAKEN = {
    "FP16 FP32 FP64": """
        acos add_position_encoding allclose:Input,Other asin atan batch_norm bilinear_tensor_product
        bipartite_match:DistMat box_clip:Input,ImInfo box_coder:PriorBox,TargetBox
        box_decoder_and_assign:PriorBox,PriorBoxVar,TargetBox,BoxScore bpr_loss brelu ceil clip conv2d:Input
        conv2d_transpose:Input conv3d:Input conv3d_transpose:Input cos cross_entropy cross_entropy2
        cudnn_lstm:Input,InitH,InitC distribute_fpn_proposals:FpnRois dropout elu floor fsp:X,Y
        generate_proposal_labels:RpnRois generate_proposals:Scores,BboxDeltas,ImInfo,Anchors hard_shrink
        hard_sigmoid hard_swish iou_similarity:X,Y leaky_relu locality_aware_nms:BBoxes,Scores logsigmoid
        matmul:X,Y matrix_nms:BBoxes,Scores mean mul:X,Y multiclass_nms2:BBoxes,Scores
        multiclass_nms:BBoxes,Scores norm polygon_box_transform:Input reciprocal relu relu6 round rsqrt
        sampling_id shuffle_channel sigmoid sigmoid_cross_entropy_with_logits sigmoid_focal_loss sign
        similarity_focus sin soft_relu softmax softmax_with_cross_entropy:Logits softplus softshrink
        softsign sqrt stanh swish tanh tanh_shrink thresholded_relu yolo_box yolov3_loss:X,GTBox,GTScore
    """,
    "FP32 FP64": """
        addmm:X,Y affine_channel affine_grid:Theta anchor_generator:Input auc:Predict
        density_prior_box:Input dist:X,Y grid_sampler:Grid,X group_norm gru_unit:HiddenPrev,Input
        hierarchical_sigmoid huber_loss:X,Y instance_norm kldiv_loss:Target,X label_smooth layer_norm
        linspace:Start,Stop log log1p maxout mish nce:Input pixel_shuffle prelu prroi_pool:X,ROIs
        roi_align:X,ROIs selu sequence_conv sequence_softmax smooth_l1_loss:X,Y spectral_norm:Weight
        square_error_cost:X,Y teacher_student_sigmoid_loss:Label,X temporal_shift unfold
    """,
    "INT32 INT64 FP16 FP32 FP64": """
        abs concat diag_embed:Input elementwise_add:X,Y elementwise_div:X,Y elementwise_floordiv:X,Y
        elementwise_max:X,Y elementwise_min:X,Y elementwise_mod:X,Y elementwise_mul:X,Y elementwise_pow:X,Y
        elementwise_sub:X,Y exp kron:X,Y meshgrid pad pad2d reshape2 roll sequence_scatter space_to_depth
        square trace:Input transpose2
    """,
    "INT32 INT64 FP32 FP64": """
        crop_tensor diag:Diagonal dot:X,Y equal:X,Y greater_equal:X,Y greater_than:X,Y increment
        index_sample index_select is_empty isfinite less_equal:X,Y less_than:X,Y lod_reset multiplex not_equal:X,Y
        pad_constant_like:Y pow reduce_mean reduce_sum sequence_expand shape:Input strided_slice:Input sum
        tril_triu unique unique_with_counts
    """,
    "FP32": """
        clip_by_norm cos_sim:X,Y crop log_loss:Labels,Predicted lrn margin_rank_loss:Label pow:FactorTensor
        rank_loss:Label,Left,Right roi_perspective_transform:X,ROIs row_conv sequence_pool warpctc:Logits
    """,
    "BOOL": """
        logical_and:X,Y logical_not logical_or:X,Y logical_xor:X,Y reduce_all reduce_any
    """,
    "INT32 INT64": """
        auc:Label gather_tree:Ids,Parents hash index_sample:Index index_select:Index
        mean_iou:Labels,Predictions multiplex:Ids one_hot scatter:Ids scatter_nd_add:Index
        sequence_enumerate sequence_scatter:Ids yolo_box:ImgSize
    """,
    "INT64": """
        beam_search:pre_ids,ids chunk_eval:Inference,Label hierarchical_sigmoid:Label lookup_table:Ids
        lookup_table_v2:Ids nce:Label shard_index warpctc:LabelLength,LogitsLength
    """,
    "BOOL INT32 INT64 FP32 FP64": """
        expand expand_as:X,target_tensor fill_zeros_like ones_like print:In
    """,
    "BOOL UINT8 INT32 INT64 FP16 FP32 FP64": """
        cast range:End,Start,Step
    """,
    "UINT8 INT16 INT32 INT64 FP32 FP64": """
        arg_max arg_min argsort
    """,
    "BOOL INT32 INT64 FP16 FP32 FP64": """
        assign flip
    """,
    "INT8 INT32 INT64 FP32 FP64": """
        flatten2 sequence_reverse
    """,
    "INT32": """
        generate_proposal_labels:GtClasses,IsCrowd linspace:Num sigmoid_focal_loss:Label,FgNum warpctc:Label
        yolov3_loss:GTLabel
    """,
    "UINT8 INT32 INT64 FP32 FP64": """
        reverse
    """,
    "UINT8 INT8 INT16 INT32 INT64 FP16 FP32 FP64": """
        scale
    """,
    "INT64 FP32 FP64": """
        sequence_concat
    """,
    "INT8 INT32 INT64 FP16 FP32 FP64": """
        squeeze2
    """,
    "UINT8 INT8 FP32 FP64": """
        prior_box:Input
    """,
}
"""Element types -> operators (or layers that accept fewer than their operator), for `X` or the inputs after ':'."""


Kinds = tuple[VarType, ...]
"""Element types: few, so that looking through them is faster than a hash."""


def _by_input() -> dict[tuple[str, str], Kinds]:
    result: dict[tuple[str, str], Kinds] = {}
    for kinds, words in _TAKEN.items():
        taken = tuple(sorted(VarType[kind] for kind in kinds.split()))
        for word in words.split():
            name, _, slots = word.partition(":")
            result.update(((name, slot), taken) for slot in (slots or "X").split(","))
    return result


_BY_INPUT = _by_input()


_LIKE = {kind: tuple(sorted(kinds)) for kinds in (FLOATS, INTEGERS, {VarType.BOOL}) for kind in kinds}
"""The types that are of one sort with a type: floats, integers, bools."""


def taken(op_type: str, slot: str, eager: bool = False) -> Kinds | None:
    """The element types that an input may have in a program; None: all.

    Fluid leaves `eager` tensors to the kernels. Here those of another category than all accepted types, such as
    integers for floats, are refused as well.
    """
    kinds = _BY_INPUT.get((op_type, slot))
    if kinds is None or not eager:
        return kinds
    sorts = {_LIKE[kind] for kind in kinds}
    return sorts.pop() if len(sorts) == 1 else None


def check(op_type: str, layer: str, inputs: dict[str, Any]) -> None:
    """Raise TypeError naming layer, input and accepted types if a Variable among `inputs` has another element type."""
    for slot, given in inputs.items():
        kinds = _BY_INPUT.get((layer, slot)) or _BY_INPUT.get((op_type, slot))
        if kinds is not None:
            for var in given if isinstance(given, (list, tuple)) else (given,):
                check_kind(kinds, slot.lower(), layer, var)


def check_kind(kinds: Kinds, name: str, layer: str, var: Any) -> None:
    """Raise TypeError unless `var`, the argument `name` of a layer, is of one of these element types."""
    dtype = getattr(var, "dtype", None)
    if isinstance(dtype, VarType) and dtype not in kinds:
        names = [str(to_numpy(kind)) for kind in kinds]
        raise wrong_type(var)(
            f"The data type of '{name}' in {layer} must be {names}, but received {to_numpy(dtype)} "
            f"({var.name!r}); fluid.layers.cast converts it"
        )
