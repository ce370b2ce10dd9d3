"""Noise-contrastive estimation: a loss over many classes that looks at few of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...backend import to_host
from ...base.dtypes import VarType
from ..grad_pairs import register_pair
from ..infer import product
from ..nn.activation import stable_sigmoid
from ..registry import Call, Effects, OpView, RowRule, Sequences, grad_name
from ..tensor.random_ import stream_of
from ..value_checks import require_in_range
from .class_scores import call_of, check_rows, grad_calls, scores_grad, scores_of

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
    no_grad=(
        "Label",
        "SampleWeight",
        "CustomDistProbs",
        "CustomDistAlias",
        "CustomDistAliasProbs",
        "SampleLogits",
        "SampleLabels",
    ),
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
