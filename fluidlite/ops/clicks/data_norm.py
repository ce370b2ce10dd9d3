"""data_norm: columns normalised by counts, sums and sums of squares that are parameters.

The gradients of the three are what a batch adds to them, so that an optimizer accumulates (Baidu's click models).
"""

from __future__ import annotations

from typing import Any

from ...base.dtypes import attribute
from ..registry import OpDef, OpSpec, OpView, Sequences, grad_name, register, standard_grad

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
    OpDef(
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
)
register(
    OpDef(
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
)
