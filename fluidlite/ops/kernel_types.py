"""For which element types Fluid 1.8 has kernels, on the CPU; and what happens to an operator that gets others than its
program was built with, because something else was fed than `fluid.layers.data` declared.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from ..base.dtypes import FLOATS, VarType, to_numpy
from .registry import GRAD, OpView

_FLOATS = "FP32 FP64"
"""What most operators have kernels for; gradient operators have those of their forward operator."""

_OTHERS = {
    "FP32 FP64": """
        bilinear_interp_grad elementwise_pow_grad lookup_table_grad nearest_interp_grad pad2d_grad pad_grad
        reduce_prod_grad trilinear_interp_grad
    """,
    "INT32 INT64 FP32 FP64": """
        abs argsort concat crop_tensor cross cumsum diag diag_embed dot elementwise_add elementwise_div
        elementwise_max elementwise_min elementwise_mod elementwise_mul elementwise_pow elementwise_sub
        equal exp expand_as_grad expand_grad get_tensor_from_selected_rows greater_equal greater_than
        increment index_sample index_select is_empty isfinite isinf isnan less_equal less_than lod_reset meshgrid
        multiplex not_equal pad pad2d pad_constant_like pow pyramid_hash_grad range reduce_max reduce_mean reduce_min
        reduce_prod reduce_sum reshape reshape2_grad roll scatter sequence_concat sequence_expand shape
        slice space_to_depth square stack strided_slice sum trace transpose2 tril_triu unique
        unique_with_counts unstack where
    """,
    "FP32": """
        auc clip_by_norm cos_sim decayed_adagrad ftrl hinge_loss l1_norm log_loss lrn margin_rank_loss minus
        rank_loss rmsprop row_conv sequence_pool smooth_l1_loss squared_l2_norm truncated_gaussian_random
        warpctc
    """,
    "INT32 INT64": """
        elementwise_floordiv mean_iou one_hot one_hot_v2 randint randperm shard_index
    """,
    "BOOL INT32 INT64 FP32 FP64": """
        expand expand_as fill_constant_batch_size_like fill_zeros_like flip where_index
    """,
    "INT32 INT64 FP16 FP32 FP64": """
        eye kron split square_grad_grad unbind
    """,
    "INT8 INT32 INT64 FP32 FP64": """
        flatten2 squeeze2 unsqueeze2
    """,
    "UINT8 INT32 INT64 FP32 FP64": """
        gather gather_nd_grad scatter_nd_add sequence_reverse
    """,
    "BOOL": """
        logical_and logical_not logical_or logical_xor reduce_all reduce_any
    """,
    "FP16 FP32 FP64": """
        elu_grad_grad erf sqrt_grad_grad
    """,
    "BOOL INT32 INT64 FP16 FP32 FP64": """
        assign fill_any_like fill_constant
    """,
    "UINT8 FP32 FP64": """
        bilinear_interp nearest_interp trilinear_interp
    """,
    "UINT8 INT16 INT32 INT64 FP32 FP64": """
        arg_max arg_min
    """,
    "BOOL UINT8 INT32 INT64 FP32 FP64": """
        gather_nd reverse
    """,
    "BOOL INT32 INT64 FP32": """
        assign_value
    """,
    "BOOL UINT8 INT32 INT64 FP16 FP32 FP64": """
        cast
    """,
    "INT8 FP32 FP64": """
        lookup_table
    """,
    "UINT8 INT8 INT32 INT64 FP32 FP64": """
        reshape2
    """,
    "UINT8 INT8 INT16 INT32 INT64 FP32 FP64": """
        scale
    """,
    "INT32": """
        seed
    """,
    "BOOL INT32 FP32 FP64": """
        size
    """,
    "BOOL UINT8 INT8 INT16 INT32 INT64 FP16 FP32 FP64": """
        array_to_lod_tensor lod_rank_table lod_tensor_to_array masked_select merge_lod_tensor
        merge_lod_tensor_infer print read_from_array reorder_lod_tensor_by_rank split_lod_tensor write_to_array
    """,
}


_MISDECLARED = ("Mask", "RankTable", "MaxIndex", "ObjectnessMask", "TopCount", "pos")
"""Slots that are of one type, whatever Fluid's programs say."""

_INTEGERS = (
    *(
        "Label",
        "Labels",
        "Index",
        "Shape",
        "ShapeTensor",
        "ShapeTensorList",
        "StartsTensor",
        "StartsTensorList",
        "EndsTensor",
    ),
    *("EndsTensorList", "StridesTensor", "StridesTensorList", "AxisTensor"),
)
"""Slots whose integers Fluid reads, whatever its programs say."""


def _kinds(text: str) -> frozenset[VarType]:
    return frozenset(VarType[name] for name in text.split())


_KINDS = {op_type: _kinds(kinds) for kinds, types in _OTHERS.items() for op_type in types.split()}
_DEFAULT = _kinds(_FLOATS)


def kinds_of(op_type: str) -> frozenset[VarType]:
    """The element types that an operator has kernels for.

    They are those of its main input, which is the first one, or the first gradient that a gradient operator gets.
    """
    found = _KINDS.get(op_type)
    if found is None and op_type.endswith("_grad"):
        return kinds_of(op_type.removesuffix("_grad"))
    return _DEFAULT if found is None else found


@cache
def gradient_kinds(op_type: str) -> frozenset[VarType]:
    """The element types that may have a gradient through an operator: of its inputs, or of what it makes.

    Floats may always; integers and booleans where there are kernels for them, which cut gradients to such numbers.
    """
    return FLOATS | kinds_of(op_type + "_grad")


def check(op: OpView, declared: Callable[[str], VarType | None]) -> tuple[VarType | None, bool]:
    """Raise OperatorError unless Fluid computes `op` on inputs of these types.

    `op` has the types of what it really gets, `declared` says those that the program was built with. Inputs that were
    declared alike must be alike, the main input must be of a type that there is a kernel for, others must stay integers
    or booleans if they are. Returns the type of the main input, and whether an input that is not read has another one.
    """
    main: tuple[VarType, VarType] | None = None
    first: dict[VarType, tuple[str, VarType]] = {}
    unread: set[VarType] = set()
    definition = op.definition
    # Where nothing else says the type (`shape`), that of what is not read counts.
    free = definition.unread if len(definition.inputs) > 1 or "dtype" in definition.attrs else frozenset()
    # Gradient operators compute in the type of the gradients that they get.
    for slot in sorted(definition.input_slots, key=lambda slot: not slot.name.endswith(GRAD)):
        for name in op.inputs.get(slot.name, ()):
            before, now = declared(name), op.meta.dtype(name)
            if before is None or slot.name in _MISDECLARED:
                continue
            if slot.name in _INTEGERS and now in _WHOLE:
                continue
            if slot.name == "XShape" or slot.name in free:
                unread.add(now)
                continue
            if main is None:
                main = before, now
                _check_main(op, slot.name, now)
            elif before not in (main[0], now):
                _check_other(op, slot.name, before, now)
            known, kind = first.setdefault(before, (name, now))
            if kind != now and (before == main[0] or before in FLOATS):
                raise op.fail(
                    f"its inputs must be of one data type, but {known} is {to_numpy(kind)} and {name} is "
                    f"{to_numpy(now)}; feed what the program declares, or cast"
                )
    return (None, False) if main is None else (main[1], bool(unread - {main[1]}))


_WHOLE = _kinds("UINT8 INT8 INT16 INT32 INT64")


def _check_main(op: OpView, slot: str, now: VarType) -> None:
    kinds = kinds_of(op.type)
    if now not in kinds:
        names = ", ".join(str(to_numpy(kind)) for kind in sorted(kinds))
        raise op.fail(f"does not have a kernel for {slot} of {to_numpy(now)}, only for {names}")


def _check_other(op: OpView, slot: str, before: VarType, now: VarType) -> None:
    if now not in (_WHOLE if before in _WHOLE else {before}):
        raise op.fail(f"{slot} was declared as {to_numpy(before)} and is {to_numpy(now)}")
