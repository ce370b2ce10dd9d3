"""Losses over many classes that evaluate some of them: noise-contrastive estimation and the hierarchical sigmoid."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...backend import to_host
from ...base.dtypes import FLOATS, VarType
from ...base.selected_rows import SelectedRows
from ..grad_pairs import register_pair
from ..infer import product
from ..native import typed
from ..nn.activation import stable_sigmoid
from ..registry import Call, Effects, OpView, Planning, RowRule, Sequences, grad_name
from ..tensor import gather as rows
from ..tensor.gather import copy_call
from ..tensor.random_ import stream_of
from ..value_checks import require_in_range


def scores_of(x: Any, weight: Any, bias: Any, chosen: Any) -> Any:
    """[rows, k]: the products of each row of `x` [rows, width] with the rows of `weight` [classes, width] that `chosen`
    [rows, k] names, plus `bias` (of `classes` elements, or None).
    """
    scores = (x[:, None, :] * weight[chosen]).sum(axis=2)
    return scores if bias is None else scores + bias.reshape(-1)[chosen]


def scores_grad(
    xp: Any, x: Any, weight: Any, bias: Any, chosen: Any, dscores: Any, sparse: Any = None
) -> tuple[Any, Any, Any]:
    """The gradients of `scores_of` for `x`, `weight` and `bias` (None without one); `dscores` is [rows, k].

    `sparse`: None for a dense gradient of `weight`; for SelectedRows, the mask [rows, k] of existing scores.
    """
    dx = (dscores[:, :, None] * weight[chosen]).sum(axis=1)
    dchosen = dscores[:, :, None] * x[:, None, :]
    if sparse is None:
        dweight = xp.zeros_like(weight)
        xp.add.at(dweight, chosen, dchosen)
    elif xp is np:
        dweight = SelectedRows(chosen[sparse], dchosen[sparse], len(weight)).merged()
    else:  # counting different rows would wait for the device; missing scores add 0
        dweight = SelectedRows(chosen.reshape(-1), dchosen.reshape(-1, weight.shape[1]), len(weight))
    if bias is None:
        return dx, dweight, None
    dbias = xp.zeros(bias.size, bias.dtype)
    xp.add.at(dbias, chosen, dscores)
    return dx, dweight, dbias.reshape(bias.shape)


def check_rows(op: OpView, first: str, *others: str) -> None:
    """Raise OperatorError unless each of the slots `others` that is there has as many rows as `first`."""
    count = op.shape(first)[0]
    for slot in others:
        rows_of = op.shape(slot)[0] if op.has(slot) else -1
        if rows_of >= 0 and count >= 0 and rows_of != count:
            raise op.fail(f"{slot} must have {count} rows, as many as {first}, got {rows_of}")


def call_of(
    op: OpView,
    kernel: str,
    given: tuple[str, ...],
    made: tuple[str, ...],
    whole: tuple[str, ...],
    ints: list[int],
) -> Call | None:
    """The call of `kernel` with the slots `given` and `made`; None if those in `whole` are not int64, or the others not
    of one real type. A slot that is missing is an operand left out.
    """
    slots = [slot for slot in (*given, *made) if op.has(slot)]
    name = typed(op, kernel, [slot for slot in slots if slot not in whole])
    if name is None or any(op.dtype(slot) != VarType.INT64 for slot in slots if slot in whole):
        return None
    return Call(name, [op.name_or_none(slot) for slot in (*given, *made)], ints)


Selector = Callable[[OpView], list[Call] | None]


def grad_calls(
    kernel: str,
    given: tuple[str, ...],
    table: tuple[str, str, str],
    whole: tuple[str, ...],
    ints: Callable[[OpView], list[int]],
) -> tuple[Selector, Selector]:
    """Selectors of the gradient call for the slots `table` (x, table, bias): with dense gradients, and with that of the
    table as SelectedRows. The other arguments are those of `call_of`.
    """
    dx, dtable, dbias = map(grad_name, table)

    def sparse(op: OpView) -> list[Call] | None:
        in_rows = op.attr("is_sparse") and op.has(dtable)
        call = call_of(op, kernel + "_rows" * in_rows, given, (dx, dtable, dbias), whole, ints(op))
        if call is None or not in_rows:
            return None if call is None else [call]
        before = list(call.operands)
        operands = [*before[:-2], *rows.parts(op.name(dtable)), before[-1]]
        return [Call(call.kernel, operands, call.ints)]

    def dense(op: OpView) -> list[Call] | None:
        return None if op.attr("is_sparse") else sparse(op)

    return dense, sparse


SAMPLERS = ("uniform", "log_uniform", "custom_dist")
"""The samplers by the number in the attribute `sampler`."""

_PROBS, _ALIAS, _OWN = "CustomDistProbs", "CustomDistAlias", "CustomDistAliasProbs"


def _odds(xp: Any, labels: Any, sampler: int, classes: int, probs: Any) -> Any:
    """The probability with which the sampler draws each label."""
    kind = SAMPLERS[sampler]
    if kind == "uniform":
        return xp.full(labels.shape, 1.0 / classes)
    if kind == "log_uniform":
        return xp.log((labels + 2.0) / (labels + 1.0)) / float(np.float32(math.log(classes)))
    return probs.reshape(-1)[labels]


def _sampled(
    Label: Any, rows: int, alias: Any, own: Any, attrs: tuple[int, int, int, int], fixed: Any
) -> Any:
    """[rows, labels + negatives]: the true classes of each row, then negative samples; for a seed those of Fluid."""
    from ..._ext import kernels

    classes, negatives, sampler, seed = attrs
    true = np.ascontiguousarray(to_host(Label), np.int64).reshape(rows, -1)
    require_in_range(np, "nce", "Label", true, classes, "classes")
    out = np.empty((rows, true.shape[1] + (len(fixed) or negatives)), np.int64)
    tables = [
        None if table is None else np.ascontiguousarray(to_host(table), dtype)
        for table, dtype in ((alias, np.int32), (own, np.float32))
    ]
    ints = [*out.shape, true.shape[1], classes, sampler, stream_of(seed), *fixed]
    kernels.call("nce_samples", [true, *tables, out], ints)
    return out


def _nce(
    xp: Any,
    Input: Any,
    Label: Any,
    Weight: Any,
    Bias: Any,
    SampleWeight: Any,
    CustomDistProbs: Any,
    CustomDistAlias: Any,
    CustomDistAliasProbs: Any,
    num_total_classes: int,
    num_neg_samples: int,
    sampler: int,
    seed: int,
    custom_neg_classes: Any,
) -> Any:
    how = (num_total_classes, num_neg_samples, sampler, seed)
    drawn = _sampled(Label, len(Input), CustomDistAlias, CustomDistAliasProbs, how, custom_neg_classes)
    labels = xp.asarray(drawn)
    found = stable_sigmoid(xp, scores_of(Input, Weight, Bias, labels))
    noise = _odds(xp, labels, sampler, num_total_classes, CustomDistProbs) * num_neg_samples
    true = Label.size // max(len(Input), 1)
    share = xp.where(xp.arange(labels.shape[1]) < true, found, noise) / (found + noise)
    cost = -xp.log(share)
    if SampleWeight is not None:
        cost = cost * SampleWeight.reshape(-1, 1)[: len(Input)]
    return cost.sum(axis=1, keepdims=True).astype(Input.dtype), found, labels


def _nce_grad(
    xp: Any,
    Input: Any,
    Label: Any,
    Weight: Any,
    Bias: Any,
    SampleWeight: Any,
    CustomDistProbs: Any,
    SampleLogits: Any,
    SampleLabels: Any,
    Cost_grad: Any,
    num_total_classes: int,
    num_neg_samples: int,
    sampler: int,
    is_sparse: bool,
) -> Any:
    noise = _odds(xp, SampleLabels, sampler, num_total_classes, CustomDistProbs) * num_neg_samples
    true = Label.size // max(len(Input), 1)
    place = xp.arange(SampleLabels.shape[1]) < true
    slope = (1 - SampleLogits) * xp.where(place, -noise, SampleLogits) / (SampleLogits + noise)
    if SampleWeight is not None:
        slope = slope * SampleWeight.reshape(-1, 1)[: len(Input)]
    slope = (slope * Cost_grad.reshape(-1, 1)).astype(Input.dtype)
    sparse = xp.ones(SampleLabels.shape, bool) if is_sparse else None
    return scores_grad(xp, Input, Weight, Bias, SampleLabels, slope, sparse)


def _nce_infer(op: OpView) -> None:
    given, label, weight = op.shape("Input"), op.shape("Label"), op.shape("Weight")
    classes = op.attr("num_total_classes")
    if len(given) != 2 or len(label) not in (1, 2):
        raise op.fail(
            f"Input must be [rows, width] and Label [rows, labels], got {list(given)}, {list(label)}"
        )
    if weight != (classes, given[1]) and given[1] >= 0:
        raise op.fail(f"Weight must be of shape {[classes, given[1]]}, got {list(weight)}")
    check_rows(op, "Input", "Label")
    weights = op.shape("SampleWeight")[0] if op.has("SampleWeight") else -1
    if 0 <= weights < given[0]:
        raise op.fail(f"SampleWeight must have {given[0]} rows, as many as Input, or more, got {weights}")
    if not 0 <= op.attr("sampler") < len(SAMPLERS):
        raise op.fail(f"sampler must be in [0, {len(SAMPLERS)}), got {op.attr('sampler')}")
    if SAMPLERS[op.attr("sampler")] == "custom_dist" and not op.has("CustomDistProbs"):
        raise op.fail("sampler custom_dist needs CustomDistProbs, CustomDistAlias and CustomDistAliasProbs")
    negatives = len(op.attr("custom_neg_classes")) or op.attr("num_neg_samples")
    width = negatives + (label[1] if len(label) == 2 else 1)
    op.set("Cost", (given[0], 1), op.dtype("Input"))
    op.set("SampleLogits", (given[0], width), op.dtype("Input"))
    op.set("SampleLabels", (given[0], width), VarType.INT64)


def _labels(op: OpView) -> int:
    """The number of true classes of a row."""
    shape = op.shape("Label")
    return shape[1] if len(shape) == 2 else 1


def _ints(op: OpView) -> list[int]:
    """The integer arguments of the native kernels, forward and gradient."""
    looked_at, weight = op.shape("SampleLabels"), op.shape("Weight")
    return [*looked_at, _labels(op), *weight, op.attr("sampler"), op.attr("num_neg_samples")]


def _native(op: OpView) -> list[Call] | None:
    given, made = (
        ("Input", "Weight", "Bias", "SampleWeight", _PROBS),
        ("SampleLabels", "SampleLogits", "Cost"),
    )
    cost = call_of(op, "nce", given, made, ("SampleLabels",), _ints(op))
    types = {"Label": VarType.INT64, _ALIAS: VarType.INT32, _OWN: VarType.FP32}
    if cost is None or any(op.has(slot) and op.dtype(slot) != dtype for slot, dtype in types.items()):
        return None
    ints = [*op.shape("SampleLabels"), _labels(op)]
    ints += [op.attr(name) for name in ("num_total_classes", "sampler", "seed")]
    operands = [op.name_or_none(slot) for slot in (*types, "SampleLabels")]
    return [Call("nce_samples", operands, [*ints, *op.attr("custom_neg_classes")]), cost]


_native_back, _native_sparse = grad_calls(
    "nce_grad",
    ("Input", "Weight", "Bias", "SampleWeight", _PROBS, "SampleLogits", "SampleLabels", grad_name("Cost")),
    ("Input", "Weight", "Bias"),
    ("SampleLabels",),
    _ints,
)

_ATTRS: dict[str, Any] = {
    "num_total_classes": 2,
    "num_neg_samples": 10,
    "sampler": 0,
    "seed": 0,
    "is_sparse": False,
    "remote_prefetch": False,
    "custom_neg_classes": [],
}
_CUSTOM = (_PROBS, _ALIAS, _OWN)
_GIVEN = ("Input", "Label", "Weight", "Bias", "SampleWeight", *_CUSTOM)

register_pair(
    "nce",
    ("Input", "Label", "Weight", "Bias?", "SampleWeight?", *(slot + "?" for slot in _CUSTOM)),
    _nce,
    _nce_grad,
    _nce_infer,
    "The cost of telling the true classes of each row from classes drawn at random.",
    outputs=("Cost", "SampleLogits", "SampleLabels"),
    attrs=_ATTRS,
    keep=_GIVEN,
    keep_out=("SampleLogits", "SampleLabels"),
    no_grad=("Label", "SampleWeight", *_CUSTOM, "SampleLogits", "SampleLabels"),
    effects=Effects(random=True),
    sequences=Sequences(source=None),
    native=(_native, _native_back),
    rows_back=RowRule(
        _nce_grad,
        out=grad_name("Weight"),
        when="is_sparse",
        count=lambda op: product(op.shape("SampleLabels")),
        native=_native_sparse,
    ),
)

LIMIT = 40.0
"""Scores are cut to the range from -LIMIT to LIMIT."""


def _depth(classes: int) -> int:
    """The maximum number of decisions in the path of a class."""
    return (classes - 1).bit_length()


def _paths(xp: Any, Label: Any, PathTable: Any, PathCode: Any, classes: int) -> tuple[Any, Any, Any]:
    """For each row and decision: the inner node, the branch taken (0 or 1), and whether there is a decision.

    A path ends at the first negative number of the table. Without a table, the path of class c is the bits of
    c + classes, from the lowest up.
    """
    label = Label.reshape(-1)
    if PathTable is not None:
        exists = (PathTable < 0).cumsum(axis=1) == 0
        return xp.where(exists, PathTable, 0), xp.where(exists, PathCode, 0), exists
    require_in_range(xp, "hierarchical_sigmoid", "Label", label, classes, "classes")
    code = (label + classes)[:, None]
    bit = xp.arange(_depth(classes))
    node = (code >> (bit + 1)) - 1
    exists = node >= 0
    return xp.where(exists, node, 0), xp.where(exists, (code >> bit) & 1, 0), exists


def _hsigmoid(
    xp: Any, X: Any, W: Any, Label: Any, PathTable: Any, PathCode: Any, Bias: Any, num_classes: int
) -> Any:
    nodes, ways, exists = _paths(xp, Label, PathTable, PathCode, num_classes)
    require_in_range(xp, "hierarchical_sigmoid", "PathTable", nodes, len(W), "rows in W")
    scores = scores_of(X, W, Bias, nodes)
    scores = xp.clip(xp.where(exists, scores, 0), -LIMIT, LIMIT).astype(X.dtype)
    # As in Fluid a decision that does not exist costs log(2): PreOut has a column for it.
    costs = xp.log1p(xp.exp(scores))
    out = costs.sum(axis=1, keepdims=True) - (ways * scores).sum(axis=1, keepdims=True)
    return out.astype(X.dtype), costs, W


def _hsigmoid_grad(
    xp: Any,
    X: Any,
    W: Any,
    Label: Any,
    PathTable: Any,
    PathCode: Any,
    Bias: Any,
    PreOut: Any,
    Out_grad: Any,
    num_classes: int,
    is_sparse: bool,
) -> Any:
    nodes, ways, exists = _paths(xp, Label, PathTable, PathCode, num_classes)
    slope = -xp.expm1(-PreOut) - ways
    slope = (xp.where(exists, slope, 0) * Out_grad.reshape(-1, 1)).astype(X.dtype)
    return scores_grad(xp, X, W, Bias, nodes, slope, exists if is_sparse else None)


def _infer(op: OpView) -> None:
    x, w, classes = op.shape("X"), op.shape("W"), op.attr("num_classes")
    if len(x) != 2 or len(w) != 2 or (x[1] != w[1] and x[1] >= 0):
        raise op.fail(f"X must be [rows, width] and W [nodes, width], got {list(x)} and {list(w)}")
    if op.dtype("X") not in FLOATS:
        raise op.fail(f"X must be of a float dtype, got {op.dtype('X')}")
    if op.has("PathTable") != op.has("PathCode"):
        raise op.fail("PathTable and PathCode must be given together")
    check_rows(op, "X", "Label", "PathTable", "PathCode")
    if op.has("PathTable") and op.shape("PathCode")[1:] != op.shape("PathTable")[1:]:
        paths = list(op.shape("PathTable")), list(op.shape("PathCode"))
        raise op.fail(f"PathTable and PathCode must be of one shape, got {paths[0]} and {paths[1]}")
    if not op.has("PathTable") and (classes < 2 or w[0] != classes - 1):
        raise op.fail(
            f"num_classes must be at least 2 and W have num_classes - 1 rows, got {classes}, {w[0]}"
        )
    width = op.shape("PathTable")[1] if op.has("PathTable") else _depth(classes)
    op.set("Out", (x[0], 1), op.dtype("X"))
    op.set("PreOut", (x[0], width), op.dtype("X"))
    op.set("W_Out", w, op.dtype("W"))


_HSIGMOID_GIVEN = ("X", "W", "Label", "PathTable", "PathCode", "Bias")
_INTEGERS = ("Label", "PathTable", "PathCode")


def _hsigmoid_ints(op: OpView) -> list[int]:
    """The integer arguments of the native kernels."""
    return [*op.shape("PreOut"), *op.shape("W"), op.attr("num_classes")]


def _hsigmoid_native(op: OpView) -> list[Call] | None:
    call = call_of(
        op, "hierarchical_sigmoid", _HSIGMOID_GIVEN, ("Out", "PreOut"), _INTEGERS, _hsigmoid_ints(op)
    )
    if call is None or not op.has("W_Out"):
        return None if call is None else [call]
    return [call, copy_call(op.name("W"), op.name("W_Out"), product(op.shape("W")), op.dtype("W"))]


_hsigmoid_native_back, _hsigmoid_native_sparse = grad_calls(
    "hierarchical_sigmoid_grad",
    (*_HSIGMOID_GIVEN, "PreOut", grad_name("Out")),
    ("X", "W", "Bias"),
    _INTEGERS,
    _hsigmoid_ints,
)

_HSIGMOID_ATTRS: dict[str, Any] = {"num_classes": 2, "is_sparse": False, "remote_prefetch": False}

register_pair(
    "hierarchical_sigmoid",
    ("X", "W", "Label", "PathTable?", "PathCode?", "Bias?"),
    _hsigmoid,
    _hsigmoid_grad,
    _infer,
    "The cost of the decisions that lead through a binary tree to the class of each row.",
    outputs=("Out", "PreOut", "W_Out?"),
    attrs=_HSIGMOID_ATTRS,
    keep_out=("PreOut",),
    no_grad=("Label", "PathTable", "PathCode", "PreOut", "W_Out"),
    sequences=Sequences(source={"Out": "X"}),
    planning=Planning(inplace=(("W_Out", "W"),)),
    native=(_hsigmoid_native, _hsigmoid_native_back),
    rows_back=RowRule(
        _hsigmoid_grad,
        out=grad_name("W"),
        when="is_sparse",
        count=lambda op: product(op.shape("PreOut")),
        native=_hsigmoid_native_sparse,
    ),
)
