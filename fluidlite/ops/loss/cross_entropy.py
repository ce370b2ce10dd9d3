"""Cross entropy: of probabilities and of logits."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.dtypes import VarType
from ...base.sizes import rows_along
from .. import planning_rules
from ..grad_pairs import register_pair
from ..infer import grads_like, grads_like_inputs, may_equal, normalize_axis, product
from ..native import Selector, element, typed
from ..nn.probability import shifted
from ..registry import Call, Dispatch, OpSpec, OpView, Planning, Sequences, grad_name, register, standard_grad
from ..value_checks import require_in_range

DX, DY, DOUT, DLOSS, DLOGITS = (grad_name(slot) for slot in ("X", "Y", "Out", "Loss", "Logits"))

LARGEST = 1e20
"""-log(0), as in Fluid."""


def _negative_log(xp: Any, p: Any) -> Any:
    """-log(p), with LARGEST for p = 0."""
    safe = xp.where(p > 0, p, xp.ones((), p.dtype))
    return xp.where(p > 0, -xp.log(safe), p.dtype.type(LARGEST))


def _classes(
    xp: Any, op_type: str, label: Any, shape: tuple[int, ...], axis: int, ignore: int
) -> tuple[Any, Any]:
    """Labels with length 1 along `axis`, those to ignore made 0; and which of them count.

    Raises OperatorError for a label that is neither a class nor `ignore`.
    """
    require_in_range(xp, op_type, "Label", label, shape[axis], "classes", ignore)
    label = label.reshape(*shape[:axis], 1, *shape[axis + 1 :]).astype("int64")
    counts = label != ignore
    return xp.where(counts, label, 0), counts


def _hits(xp: Any, label: Any, counts: Any, classes: int, axis: int) -> Any:
    """True at the class of each label that counts."""
    shape = [1] * label.ndim
    shape[axis] = classes
    return (xp.arange(classes).reshape(shape) == label) & counts


def _cross_entropy(xp: Any, X: Any, Label: Any, soft_label: bool, ignore_index: int) -> Any:
    if soft_label:
        share = xp.where(Label != 0, Label * _negative_log(xp, X), xp.zeros((), X.dtype))
        return share.sum(axis=-1, keepdims=True)
    y, _ = _label_losses(xp, "cross_entropy", X, Label, ignore_index)
    return y.reshape(_loss_shape(X.shape, Label.shape))


def _label_losses(xp: Any, op_type: str, x: Any, label: Any, ignore: int) -> tuple[Any, Any]:
    """The loss of each row and the probability of its label (both 0 if ignored), with last dimension 1."""
    classes, counts = _classes(xp, op_type, label, x.shape, x.ndim - 1, ignore)
    match = xp.take_along_axis(x, classes, axis=-1)
    loss = xp.where(counts, _negative_log(xp, match), xp.zeros((), x.dtype))
    return loss, xp.where(counts, match, xp.zeros((), x.dtype))


def _loss_shape(x: tuple[int, ...], label: tuple[int, ...]) -> tuple[int, ...]:
    """Labels of the rank of X keep their last dimension of 1, others have none."""
    return (*x[:-1], 1) if len(label) == len(x) else tuple(x[:-1])


def _cross_entropy_grad(xp: Any, X: Any, Label: Any, Y_grad: Any, soft_label: bool, ignore_index: int) -> Any:
    if soft_label:
        weight = Label
    else:
        classes, counts = _classes(xp, "cross_entropy_grad", Label, X.shape, X.ndim - 1, ignore_index)
        weight = _hits(xp, classes, counts, X.shape[-1], X.ndim - 1).astype(X.dtype)
    safe = xp.where(weight != 0, X, xp.ones((), X.dtype))
    return -Y_grad.reshape(*X.shape[:-1], 1) * weight / safe


def _cross_entropy_double_grad(
    xp: Any, X: Any, Label: Any, DY: Any, DDX: Any, soft_label: bool, ignore_index: int
) -> Any:
    slope = _cross_entropy_grad(xp, X, Label, xp.ones_like(DY), soft_label, ignore_index)
    safe = xp.where(slope != 0, X, xp.ones((), X.dtype))
    dx = -DY.reshape(*X.shape[:-1], 1) * DDX * slope / safe
    return dx, (DDX * slope).sum(axis=-1).reshape(DY.shape)


def _cross_entropy2(xp: Any, X: Any, Label: Any, ignore_index: int) -> Any:
    y, match = _label_losses(xp, "cross_entropy2", X, Label, ignore_index)
    return y.reshape(_loss_shape(X.shape, Label.shape)), xp.zeros((*X.shape, 0), X.dtype), match


def _cross_entropy_grad2(
    xp: Any, Label: Any, MatchX: Any, XShape: Any, Y_grad: Any, ignore_index: int
) -> Any:
    shape = XShape.shape[:-1]
    classes, counts = _classes(xp, "cross_entropy_grad2", Label, shape, len(shape) - 1, ignore_index)
    hit = _hits(xp, classes, counts, shape[-1], len(shape) - 1)
    safe = xp.where(counts, MatchX, xp.ones((), MatchX.dtype))
    with np.errstate(divide="ignore"):  # a label of probability 0 has an infinite gradient
        return xp.where(hit, -Y_grad.reshape(MatchX.shape) / safe, xp.zeros((), MatchX.dtype))


def _check_labels(op: OpView, values: str, soft: bool, axis: int = -1) -> None:
    """Labels must fit the values: as many rows, of one class each or (soft) of a weight for each class."""
    shape, label = op.shape(values), op.shape("Label")
    axis = normalize_axis(op, axis, len(shape))
    if soft:
        if not may_equal(label, shape):
            raise op.fail(f"soft labels must have the shape of {values}, {list(shape)}, got {list(label)}")
        return
    if op.exact and op.dtype("Label") not in (VarType.INT64, VarType.INT32):
        raise op.fail(
            f"Label must be int64 or int32 class numbers, got {op.dtype('Label')}; soft ones need soft_label"
        )
    rows = (*shape[:axis], *shape[axis + 1 :])
    one = (*shape[:axis], 1, *shape[axis + 1 :])
    if not (may_equal(label, one) or may_equal(label, rows)):
        raise op.fail(f"Label must have shape {list(one)}, one class number a row, got {list(label)}")


def _cross_entropy_infer(op: OpView) -> None:
    soft = "soft_label" in op.definition.attrs and op.attr("soft_label")
    _check_labels(op, "X", soft)
    shape = op.shape("X")
    op.set("Y", _loss_shape(shape, shape if soft else op.shape("Label")), op.dtype("X"))
    if "MatchX" in op.definition.slots:
        op.set("XShape", (*shape, 0), op.dtype("X"))
        op.set("MatchX", (*shape[:-1], 1), op.dtype("X"))


def _cross_entropy_grad2_infer(op: OpView) -> None:
    op.set(DX, op.shape("XShape")[:-1], op.dtype("MatchX"))


def _int64(op: OpView) -> bool:
    return element(op, "Label") == "i64"


def _rows(op: OpView, slot: str) -> list[int]:
    shape = op.shape(slot)
    return [product(shape[:-1]), shape[-1]]


def _native(op: OpView) -> Call | None:
    operands: list[str | None] = [op.name("X"), op.name("Label"), op.name("Y")]
    if "soft_label" in op.definition.attrs and op.attr("soft_label"):
        name = typed(op, "cross_entropy_soft", ("X", "Label"))
        return None if name is None else Call(name, operands, _rows(op, "X"))
    name = typed(op, "cross_entropy", ("X",))
    if name is None or not _int64(op):
        return None
    match = op.name_or_none("MatchX") if "MatchX" in op.definition.slots else None
    return Call(name, [*operands, match], [*_rows(op, "X"), op.attr("ignore_index")])


def _native_grad(op: OpView) -> Call | None:
    if op.attr("soft_label"):
        name = typed(op, "cross_entropy_soft_grad", ("X", "Label", DY))
        soft = [op.name("X"), op.name("Label"), op.name(DY), op.name(DX)]
        return None if name is None else Call(name, soft, _rows(op, "X"))
    name = typed(op, "cross_entropy_grad", ("X", DY))
    if name is None or not _int64(op):
        return None
    operands = [op.name("X"), None, op.name("Label"), op.name(DY), op.name(DX)]
    return Call(name, operands, [*_rows(op, "X"), op.attr("ignore_index")])


def _native_grad2(op: OpView) -> Call | None:
    name = typed(op, "cross_entropy_grad", ("MatchX", DY))
    if name is None or not _int64(op):
        return None
    operands = [None, op.name("MatchX"), op.name("Label"), op.name(DY), op.name(DX)]
    return Call(name, operands, [*_rows(op, DX), op.attr("ignore_index")])


register_pair(
    "cross_entropy",
    ("X", "Label"),
    _cross_entropy,
    _cross_entropy_grad,
    _cross_entropy_infer,
    "The cross entropy of each row of probabilities and its label: a class number, or a weight "
    "for each class.",
    outputs=("Y",),
    attrs={"soft_label": False, "ignore_index": -100},
    no_grad=("Label",),
    planning=Planning(batchable=planning_rules.along_last_axis, pattern="entropy"),
    planning_back=Planning(batchable=planning_rules.along_last_axis, inplace=((DX, "X"),)),
    second=(_cross_entropy_double_grad, ("X",)),
    native=(_native, _native_grad),
    cuda=("losses.cross_entropy", "losses.cross_entropy_grad"),
)
register(
    "cross_entropy2",
    inputs=("X", "Label"),
    outputs=("Y", "XShape", "MatchX"),
    attrs={"ignore_index": -100},
    infer=_cross_entropy_infer,
    kernel=_cross_entropy2,
    grad=standard_grad(inputs=("Label",), outputs=("MatchX", "XShape"), type="cross_entropy_grad2"),
    no_grad=("Label", "XShape", "MatchX"),
    native=_native,
    dispatch=Dispatch(cuda="losses.cross_entropy2"),
    sequences=Sequences(source={"Y": "X"}),
    planning=Planning(batchable=planning_rules.along_last_axis, pattern="entropy"),
    doc=(
        "Cross entropy for class numbers; MatchX is the probability of each label, XShape only has a shape."
    ),
)
register(
    "cross_entropy_grad2",
    inputs=("Label", "MatchX", "XShape", DY),
    outputs=(DX,),
    attrs={"ignore_index": -100},
    infer=_cross_entropy_grad2_infer,
    kernel=_cross_entropy_grad2,
    native=_native_grad2,
    dispatch=Dispatch(cuda="losses.cross_entropy_grad2"),
    planning=Planning(batchable=planning_rules.along_last_axis, pattern="entropy_grad"),
    doc="The gradient of cross_entropy2 for the probabilities.",
)


def _softmax_with_cross_entropy(
    xp: Any, Logits: Any, Label: Any, soft_label: bool, ignore_index: int, axis: int
) -> Any:
    axis = axis % Logits.ndim
    low = shifted(xp, Logits, axis)
    powers = xp.exp(low)
    total = powers.sum(axis=axis, keepdims=True)
    logs = low - xp.log(total)
    if soft_label:
        loss = -(Label * logs).sum(axis=axis, keepdims=True)
    else:
        classes, counts = _classes(xp, "softmax_with_cross_entropy", Label, Logits.shape, axis, ignore_index)
        picked = -xp.take_along_axis(logs, classes, axis=axis)
        loss = xp.where(counts, picked, xp.zeros((), Logits.dtype))
    return powers / total, loss


def _softmax_with_cross_entropy_grad(
    xp: Any, Softmax: Any, Label: Any, Loss_grad: Any, soft_label: bool, ignore_index: int, axis: int
) -> Any:
    axis = axis % Softmax.ndim
    if soft_label:
        return Loss_grad * (Softmax - Label)
    classes, counts = _classes(
        xp, "softmax_with_cross_entropy_grad", Label, Softmax.shape, axis, ignore_index
    )
    hit = _hits(xp, classes, counts, Softmax.shape[axis], axis)
    return Loss_grad * xp.where(counts, Softmax - hit.astype(Softmax.dtype), xp.zeros((), Softmax.dtype))


def _softmax_infer(op: OpView) -> None:
    shape = op.shape("Logits")
    axis = normalize_axis(op, op.attr("axis"), len(shape))
    _check_labels(op, "Logits", op.attr("soft_label"), axis)
    op.set("Softmax", shape, op.dtype("Logits"))
    op.set("Loss", (*shape[:axis], 1, *shape[axis + 1 :]), op.dtype("Logits"))


def _softmax_native(suffix: str, given: tuple[str, ...], operands: tuple[str, ...]) -> Selector:
    """The call for soft labels or class numbers; `given`: the inputs but Label, the first one with the rows."""

    def select(op: OpView) -> Call | None:
        soft, rows = op.attr("soft_label"), rows_along(op.shape(given[0]), op.attr("axis"))
        kernel = f"softmax_with_cross_entropy{'_soft' if soft else ''}{suffix}"
        name = typed(op, kernel, (*given, "Label") if soft else given)
        if name is None or rows is None or not (soft or _int64(op)):
            return None
        return Call(name, list(map(op.name, operands)), rows if soft else [*rows, op.attr("ignore_index")])

    return select


def _softmax_rule(op: OpView) -> list[OpSpec]:
    """Through the loss; and through the softmax, which only second derivatives go through."""
    (softmax,), (logits,) = op.outputs["Softmax"], op.inputs["Logits"]
    through = OpSpec(
        "softmax_grad",
        {"Out": [softmax], DOUT: [grad_name(softmax)]},
        {grad_name("X"): [grad_name(logits)]},
        {"axis": op.attr("axis")},
    )
    return [*standard_grad(inputs=("Label",), outputs=("Softmax",))(op), through]


def _softmax_double_grad(
    xp: Any,
    Softmax: Any,
    Label: Any,
    Loss_grad: Any,
    Logits_grad_grad: Any,
    soft_label: bool,
    ignore_index: int,
    axis: int,
) -> Any:
    axis = axis % Softmax.ndim
    ones = xp.ones((), Softmax.dtype)
    slope = _softmax_with_cross_entropy_grad(xp, Softmax, Label, ones, soft_label, ignore_index, axis)
    counts = ones
    if not soft_label:
        _, counts = _classes(xp, "softmax_with_cross_entropy_grad", Label, Softmax.shape, axis, ignore_index)
    for_softmax = (Logits_grad_grad * Loss_grad * counts).astype(Softmax.dtype)
    return for_softmax, (Logits_grad_grad * slope).sum(axis=axis, keepdims=True)


_SOFTMAX = {"soft_label": False, "numeric_stable_mode": True, "ignore_index": -100, "axis": -1}

register(
    "softmax_with_cross_entropy",
    inputs=("Logits", "Label"),
    outputs=("Softmax", "Loss"),
    attrs=_SOFTMAX,
    infer=_softmax_infer,
    kernel=_softmax_with_cross_entropy,
    grad=_softmax_rule,
    no_grad=("Label", "Softmax"),
    native=_softmax_native("", ("Logits",), ("Logits", "Label", "Softmax", "Loss")),
    dispatch=Dispatch(cuda="losses.softmax_cross_entropy"),
    planning=Planning(inplace=(("Softmax", "Logits"),), batchable=planning_rules.along_other_axis),
    doc="Softmax along an axis, and its cross entropy with class numbers or soft labels.",
)
register(
    "softmax_with_cross_entropy_grad",
    inputs=("Label", "Softmax", DLOSS),
    outputs=(DLOGITS,),
    attrs=_SOFTMAX,
    infer=grads_like(Logits="Softmax"),
    kernel=_softmax_with_cross_entropy_grad,
    grad=standard_grad(inputs=("Label", "Softmax", DLOSS)),
    no_grad=("Label",),
    native=_softmax_native("_grad", ("Softmax", DLOSS), ("Softmax", "Label", DLOSS, DLOGITS)),
    dispatch=Dispatch(cuda="losses.softmax_cross_entropy_grad"),
    planning=Planning(inplace=((DLOGITS, "Softmax"),), batchable=planning_rules.along_other_axis),
    doc="The gradient of softmax_with_cross_entropy for the logits.",
)
register(
    "softmax_with_cross_entropy_grad_grad",
    inputs=("Label", "Softmax", DLOSS, grad_name(DLOGITS)),
    outputs=(grad_name("Softmax"), grad_name(DLOSS)),
    attrs=_SOFTMAX,
    infer=grads_like_inputs,
    kernel=_softmax_double_grad,
    doc="The gradient of softmax_with_cross_entropy_grad for the softmax and the gradient of the loss.",
)
