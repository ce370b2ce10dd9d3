"""Operators of models of clicks: data_norm, filter_by_instag, hash, cvm."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.dtypes import VarType, attribute
from ..grad_pairs import register_pair
from ..host_fallback import hosted
from ..registry import (
    Attr,
    Levels,
    LodArray,
    OperatorError,
    OpSpec,
    OpView,
    Sequences,
    grad_name,
    register,
    standard_grad,
)
from ..sequence import Lods, grads_keep_sequences, input_lod
from .pyramid_hash import rotated

# data_norm: columns normalised by counts, sums and sums of squares that are parameters.
#
# The gradients of the three are what a batch adds to them, so that an optimizer accumulates (Baidu's click models).

_ATTRS: dict[str, Any] = {
    "epsilon": 1e-4,
    "slot_dim": -1,
    "summary_decay_rate": 0.9999999,
    "enable_scale_and_shift": False,
    "data_layout": "NCHW",
    "sync_stats": False,
    "use_mkldnn": False,
}
_SUMS = ("BatchSize", "BatchSum", "BatchSquareSum")


def _shown(xp: Any, X: Any, slot_dim: int) -> Any:
    """The mask of elements to normalise (None: all): groups of `slot_dim` columns whose first, a count, is not 0."""
    if slot_dim <= 0:
        return None
    firsts = xp.repeat(xp.abs(X[:, ::slot_dim]) >= 1e-7, slot_dim, axis=1)
    return firsts[:, : X.shape[1]]


def _kept(xp: Any, shown: Any, values: Any) -> Any:
    return values if shown is None else xp.where(shown, values, xp.zeros_like(values))


def _data_norm(
    xp: Any,
    scale_w: Any,
    bias: Any,
    X: Any,
    BatchSize: Any,
    BatchSum: Any,
    BatchSquareSum: Any,
    slot_dim: int,
    enable_scale_and_shift: bool,
) -> Any:
    means, scales = BatchSum / BatchSize, xp.sqrt(BatchSize / BatchSquareSum)
    y = (X - means) * scales
    if enable_scale_and_shift:
        y = y * scale_w + bias
    return _kept(xp, _shown(xp, X, slot_dim), y), means, scales


def _data_norm_grad(
    xp: Any,
    scale_w: Any,
    X: Any,
    Means: Any,
    Scales: Any,
    Y_grad: Any,
    epsilon: float,
    slot_dim: int,
    enable_scale_and_shift: bool,
) -> Any:
    shown = _shown(xp, X, slot_dim)
    # As in Fluid, masked elements have gradients for X, unless they are scaled.
    centered, dy = X - Means, _kept(xp, shown, Y_grad)
    sums, squares = _kept(xp, shown, X).sum(axis=0), _kept(xp, shown, centered * centered).sum(axis=0)
    if shown is None:
        counts = xp.full_like(Means, len(X))
        squares = squares + counts * counts.dtype.type(epsilon)
    else:
        found = shown.sum(axis=0).astype(X.dtype)
        counts, shares = xp.minimum(found, 1), xp.maximum(found, 1)
        sums, squares = sums / shares, squares / shares + found * found.dtype.type(epsilon)
    dscale = dbias = None
    dx = Y_grad * Scales
    if enable_scale_and_shift:
        dscale, dbias, dx = (dy * centered * Scales).sum(axis=0), dy.sum(axis=0), dy * Scales * scale_w
    return dscale, dbias, dx, counts, sums, squares, None, None, None


def _infer(op: OpView) -> None:
    shape, epsilon = op.shape("X"), op.attr("epsilon")
    if not 0 <= epsilon <= attribute(0.001):
        raise op.fail(f"epsilon must be in [0, 0.001], got {epsilon}")
    if len(shape) != 2:
        op.refuse(f"X must be [rows, width], got {list(shape)}")
    width = shape[-1] if op.attr("data_layout") == "NHWC" else shape[1]
    for slot in (*_SUMS, *(("scale_w", "bias") if op.attr("enable_scale_and_shift") else ())):
        if not op.has(slot):
            raise op.fail(f"{slot} is missing, which enable_scale_and_shift needs")
        if op.shape(slot) != (width,) and width >= 0:
            raise op.fail(
                f"{slot} must have shape [{width}], a value for each column, got {list(op.shape(slot))}"
            )
    op.set("Y", shape, op.dtype("X"))
    for slot in ("Means", "Scales"):
        op.set(slot, op.shape("BatchSize"), op.dtype("X"))


def _infer_grad(op: OpView) -> None:
    for slot, source in (
        ("scale_w", "Means"),
        ("bias", "Means"),
        ("X", "X"),
        *((sum_, "Means") for sum_ in _SUMS),
    ):
        op.set(grad_name(slot), op.shape(source), op.dtype(source))


def _rule(op: OpView) -> list[OpSpec]:
    """The standard gradient rule, with the sums as further results, as in Fluid."""
    (spec,) = standard_grad(inputs=("scale_w", "bias", "X"), outputs=("Means", "Scales"))(op)
    spec.outputs.update((slot, list(op.names(slot))) for slot in _SUMS)
    return [spec]


register(
    "data_norm",
    ("scale_w?", "bias?", "X", *_SUMS),
    ("Y", "Means", "Scales"),
    _ATTRS,
    infer=_infer,
    kernel=_data_norm,
    grad=_rule,
    no_grad=("Means", "Scales"),
    sequences=Sequences(source={"Y": "X"}),
    doc="(X - BatchSum / BatchSize) * sqrt(BatchSize / BatchSquareSum), column by column.",
)
register(
    "data_norm_grad",
    ("scale_w?", "bias?", "X", "Means", "Scales", grad_name("Y")),
    (
        *(grad_name(slot) + "?" for slot in ("scale_w", "bias", "X", *_SUMS)),
        *(slot + "?" for slot in _SUMS),
    ),
    _ATTRS,
    infer=_infer_grad,
    kernel=_data_norm_grad,
    sequences=Sequences(source=None),
    doc=(
        "The gradient of data_norm for X, scale and shift, and what the batch adds to count, sum and squares. "
        "Programs of Fluid name the three themselves as outputs, too; nothing is written there."
    ),
)


def _offsets(lod: Lods, slot: str, rows: int) -> Any:
    levels = input_lod(lod, slot)
    return np.asarray(levels[0]) if levels else np.arange(rows + 1)


@hosted
def _filter(
    xp: Any, Ins: Any, Ins_tag: Any, Filter_tag: Any, is_lod: bool, out_val_if_empty: int, lod: Lods
) -> Any:
    tags = _offsets(lod, "Ins_tag", len(Ins_tag))
    if is_lod and not input_lod(lod, "Ins"):
        raise OperatorError("operator filter_by_instag: Ins has no sequences, which is_lod=True asks for")
    rows = np.asarray(input_lod(lod, "Ins")[0]) if is_lod else np.arange(len(tags))
    if len(rows) != len(tags) or rows[-1] > len(Ins):
        raise OperatorError(
            f"operator filter_by_instag: Ins has {len(rows) - 1 if is_lod else len(Ins)} samples, but Ins_tag has "
            f"tags of {len(tags) - 1}"
        )
    hits = np.concatenate([[0], np.cumsum(np.isin(Ins_tag.reshape(-1), Filter_tag))])
    chosen = np.flatnonzero(hits[tags[1:]] > hits[tags[:-1]])
    if not len(chosen):
        out = np.full((1, *Ins.shape[1:]), out_val_if_empty, Ins.dtype)
        one = [np.array([0, 1])]
        places = np.array([[0, 1, 1]])
        return LodArray(out, one), LodArray(np.zeros((1, 1), "float32"), one), LodArray(places, one)
    lengths = (rows[1:] - rows[:-1])[chosen]
    starts = np.concatenate([[0], np.cumsum(lengths)])
    places = np.stack([starts[:-1], rows[chosen], lengths], axis=1).astype("int64")
    out = Ins[_rows_of(places)]
    each = [np.arange(len(chosen) + 1)]
    weight = np.ones((len(chosen), 1), "float32")
    return LodArray(out, [starts]), LodArray(weight, each), LodArray(places, each)


def _rows_of(places: Any) -> Any:
    """The rows of Ins that the rows of Out came from."""
    return np.repeat(places[:, 1] - places[:, 0], places[:, 2]) + np.arange(places[:, 2].sum())


@hosted
def _filter_grad(xp: Any, Ins: Any, IndexMap: Any, LossWeight: Any, Out_grad: Any, lod: Lods) -> Any:
    """Zero if LossWeight is 0: no sample was chosen then."""
    made = np.zeros_like(Ins)
    if LossWeight.any():
        made[_rows_of(IndexMap)] = Out_grad
    return LodArray(made, input_lod(lod, "Ins")) if input_lod(lod, "Ins") else made


def _filter_by_instag_infer(op: OpView) -> None:
    shape = op.shape("Ins")
    op.set("Out", (-1, *shape[1:]), op.dtype("Ins"))
    op.set("LossWeight", (-1, 1), VarType.FP32)
    op.set("IndexMap", (-1, 2 if op.building else 3), VarType.INT64)


register_pair(
    "filter_by_instag",
    ("Ins", "Ins_tag", "Filter_tag"),
    _filter,
    _filter_grad,
    _filter_by_instag_infer,
    "The samples of Ins with a wanted tag; IndexMap: where each begins in Out and Ins, and its length.",
    outputs=("Out", "LossWeight", "IndexMap"),
    attrs={"is_lod": True, "out_val_if_empty": Attr(0, "LONG")},
    keep=("Ins",),
    keep_out=("LossWeight", "IndexMap"),
    no_grad=("Ins_tag", "Filter_tag", "LossWeight", "IndexMap"),
    sequences=Sequences(takes_lod=True),
)

_PRIMES = tuple(
    np.uint64(p)
    for p in (
        0x9E3779B185EBCA87,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5,
    )
)


def _round(lane: Any, word: Any) -> Any:
    return rotated(lane + word * _PRIMES[1], 31) * _PRIMES[0]


def xxh64(rows: Any, seed: int) -> Any:
    """XXH64 of each row of bytes, [n, length]; `length` is a multiple of 4."""
    one, two, three, four, five = _PRIMES
    length = rows.shape[1]
    start = np.uint64(seed)
    words = np.ascontiguousarray(rows[:, : length // 8 * 8]).view("<u8").astype(np.uint64)
    stripes = length // 32
    if stripes:
        lanes = [np.full(len(rows), s) for s in (start + one + two, start + two, start, start - one)]
        for stripe in range(stripes):
            lanes = [_round(lane, words[:, 4 * stripe + k]) for k, lane in enumerate(lanes)]
        made = rotated(lanes[0], 1) + rotated(lanes[1], 7) + rotated(lanes[2], 12) + rotated(lanes[3], 18)
        for lane in lanes:
            made = (made ^ _round(np.zeros_like(lane), lane)) * one + four
    else:
        made = np.full(len(rows), start + five)
    made = made + np.uint64(length)
    for k in range(4 * stripes, length // 8):
        made = rotated(made ^ _round(np.zeros_like(made), words[:, k]), 27) * one + four
    if length % 8:
        rest = np.ascontiguousarray(rows[:, length // 8 * 8 :]).view("<u4")[:, 0].astype(np.uint64)
        made = rotated(made ^ rest * one, 23) * two + three
    made = (made ^ made >> np.uint64(33)) * two
    made = (made ^ made >> np.uint64(29)) * three
    return made ^ made >> np.uint64(32)


@hosted
def _hash(xp: Any, X: Any, num_hash: int, mod_by: int, lod: Lods) -> Any:
    rows = np.ascontiguousarray(X).view(np.uint8).reshape(len(X), -1)
    with np.errstate(over="ignore"):
        made = [xxh64(rows, seed) % np.uint64(mod_by) for seed in range(num_hash)]
    out = np.stack(made, axis=1).astype(X.dtype)[:, :, None]
    return LodArray(out, input_lod(lod, "X")) if input_lod(lod, "X") else out


def _hash_infer(op: OpView) -> None:
    shape = op.shape("X")
    if len(shape) != 2:
        raise op.fail(f"X must be [rows, width], got {list(shape)}")
    if op.dtype("X") not in (VarType.INT32, VarType.INT64):
        raise op.fail(f"X must be int32 or int64, got {op.dtype('X')}")
    if op.attr("num_hash") < 1 or op.attr("mod_by") < 1:
        raise op.fail(
            f"num_hash and mod_by must be positive, got {op.attr('num_hash')} and {op.attr('mod_by')}"
        )
    op.set("Out", (shape[0], op.attr("num_hash"), 1), op.dtype("X"))
    op.carry("Out", op.lod("X"))


register(
    "hash",
    ("X",),
    ("Out",),
    {"num_hash": 1, "mod_by": Attr(100000, "LONG")},
    infer=_hash_infer,
    kernel=_hash,
    no_grad=("Out",),
    sequences=Sequences(takes_lod=True, inferred=True, levels=Levels("X")),
    doc="`num_hash` numbers below mod_by for each row of integers: XXH64 of its bytes, from seeds 0, 1, ...",
)


def _cvm(xp: Any, X: Any, use_cvm: bool, lod: Lods) -> Any:
    made = X[:, 2:]
    if use_cvm:
        shown = xp.log(X[:, :1] + 1)
        made = xp.concatenate([shown, xp.log(X[:, 1:2] + 1) - shown, made], axis=1)
    return LodArray(made, input_lod(lod, "X"))


def _cvm_grad(xp: Any, X: Any, CVM: Any, Y_grad: Any, use_cvm: bool, lod: Lods) -> Any:
    """The gradient of X; that of both counts is CVM of the row or its sequence, as in Fluid."""
    levels = input_lod(lod, "X")
    if levels:
        counts = CVM[xp.asarray(np.repeat(np.arange(len(levels[-1]) - 1), np.diff(levels[-1])))]
    else:
        counts = CVM
    if len(counts) != len(X):
        raise OperatorError(f"operator cvm_grad: CVM has rows for {len(counts)} of the {len(X)} rows of X")
    rest = Y_grad[:, 2:] if use_cvm else Y_grad
    gradient = xp.concatenate([counts.astype(X.dtype), rest], axis=1)
    return LodArray(gradient, levels) if levels else gradient


def _cvm_infer(op: OpView) -> None:
    x, counts = op.shape("X"), op.shape("CVM")
    if len(x) != 2 or (x[1] < 2 and x[1] >= 0):
        raise op.fail(f"X must be [rows, width] with a width of at least 2, got {list(x)}")
    if len(counts) != 2 or counts[1] not in (2, -1):
        raise op.fail(f"CVM must be [rows, 2], got {list(counts)}")
    op.set("Y", (x[0], x[1] if op.attr("use_cvm") or x[1] < 0 else x[1] - 2), op.dtype("X"))
    op.carry("Y", op.lod("X"))


register_pair(
    "cvm",
    ("X", "CVM"),
    _cvm,
    _cvm_grad,
    _cvm_infer,
    "Rows with their counts of showing and clicking on a logarithmic scale, or without these.",
    outputs=("Y",),
    attrs={"use_cvm": True},
    no_grad=("CVM",),
    sequences=Sequences(levels=Levels("X"), takes_lod=True, inferred=True),
    infer_back=grads_keep_sequences,
)
