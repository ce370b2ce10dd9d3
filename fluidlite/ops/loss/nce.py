"""Noise-contrastive estimation: a loss over many classes that looks at few of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._ext import rng
from ...backend import to_host
from ...base.dtypes import VarType
from ..nn.activation import stable_sigmoid
from ..pairs import register_pair
from ..ranges import require_in_range
from ..registry import OpView
from ..tensor.random_ import fresh_seed
from .class_scores import scores_grad, scores_of

SAMPLERS = ("uniform", "log_uniform", "custom_dist")
"""What the numbers in the attribute `sampler` mean."""

_SPAN = float(2**64)


def _draw(sampler: int, classes: int, count: int, seed: int, alias: Any, alias_probs: Any) -> Any:
    """`count` classes from the named distribution, for a seed those of Fluid 1.8."""
    kind = SAMPLERS[sampler]
    seed = seed or fresh_seed()
    if kind == "custom_dist":
        return _aliased(classes, count, seed, alias, alias_probs)
    bits = rng.sampler_bits(seed, count)
    if kind == "log_uniform":
        share = (bits / _SPAN).astype(np.float32)
        return np.minimum(np.exp(share * np.log(float(classes))).astype(np.int64) - 1, classes - 1)
    return np.minimum(bits // np.uint64((2**64 - 1) // classes), classes - 1).astype(np.int64)


def _aliased(classes: int, count: int, seed: int, alias: Any, alias_probs: Any) -> Any:
    """`count` classes from alias tables: a column, then a number that chooses between its two classes.

    Fluid takes them from MT19937 of 32 bits, one draw for the column and two for the number.
    """
    words = np.frombuffer(np.random.RandomState(seed % 2**32).bytes(12 * count), "<u4").reshape(count, 3)
    column = np.minimum(words[:, 0] // np.uint32((2**32 - 1) // classes), classes - 1).astype(np.int64)
    number = (words[:, 1] + words[:, 2] * float(2**32)) / _SPAN
    drop = number > to_host(alias_probs).reshape(-1)[column]
    return np.where(drop, to_host(alias).reshape(-1)[column], column)


def _odds(xp: Any, labels: Any, sampler: int, classes: int, probs: Any) -> Any:
    """How probable the sampler finds each label."""
    kind = SAMPLERS[sampler]
    if kind == "uniform":
        return xp.full(labels.shape, 1.0 / classes)
    if kind == "log_uniform":
        return xp.log((labels + 2.0) / (labels + 1.0)) / math.log(classes)
    return probs.reshape(-1)[labels]


def _sampled(
    xp: Any, Label: Any, rows: int, alias: Any, alias_probs: Any, attrs: tuple[int, int, int, int], fixed: Any
) -> Any:
    """[rows, labels + negatives]: the true classes of each row, then its negative ones."""
    classes, negatives, sampler, seed = attrs
    true = Label.reshape(rows, -1)
    require_in_range(xp, "nce", "Label", true, classes, "classes")
    if len(fixed):
        drawn = np.tile(np.asarray(fixed, np.int64), (rows, 1))
    else:
        drawn = _draw(sampler, classes, rows * negatives, seed, alias, alias_probs).reshape(rows, negatives)
    return xp.concatenate([true.astype("int64"), xp.asarray(drawn)], axis=1)


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
    labels = _sampled(xp, Label, len(Input), CustomDistAlias, CustomDistAliasProbs, how, custom_neg_classes)
    found = stable_sigmoid(xp, scores_of(Input, Weight, Bias, labels))
    noise = _odds(xp, labels, sampler, num_total_classes, CustomDistProbs) * num_neg_samples
    true = Label.size // max(len(Input), 1)
    share = xp.where(xp.arange(labels.shape[1]) < true, found, noise) / (found + noise)
    cost = -xp.log(share)
    if SampleWeight is not None:
        cost = cost * SampleWeight.reshape(-1, 1)
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
) -> Any:
    noise = _odds(xp, SampleLabels, sampler, num_total_classes, CustomDistProbs) * num_neg_samples
    true = Label.size // max(len(Input), 1)
    place = xp.arange(SampleLabels.shape[1]) < true
    slope = (1 - SampleLogits) * xp.where(place, -noise, SampleLogits) / (SampleLogits + noise)
    if SampleWeight is not None:
        slope = slope * SampleWeight.reshape(-1, 1)
    slope = (slope * Cost_grad.reshape(-1, 1)).astype(Input.dtype)
    return scores_grad(xp, Input, Weight, Bias, SampleLabels, slope)


def _nce_infer(op: OpView) -> None:
    given, label, weight = op.shape("Input"), op.shape("Label"), op.shape("Weight")
    classes = op.attr("num_total_classes")
    if len(given) != 2 or len(label) not in (1, 2):
        raise op.fail(
            f"Input must be [rows, width] and Label [rows, labels], got {list(given)}, {list(label)}"
        )
    if weight != (classes, given[1]) and given[1] >= 0:
        raise op.fail(f"Weight must be of shape {[classes, given[1]]}, got {list(weight)}")
    if not 0 <= op.attr("sampler") < len(SAMPLERS):
        raise op.fail(f"sampler must be in [0, {len(SAMPLERS)}), got {op.attr('sampler')}")
    if SAMPLERS[op.attr("sampler")] == "custom_dist" and not op.has("CustomDistProbs"):
        raise op.fail("sampler custom_dist needs CustomDistProbs, CustomDistAlias and CustomDistAliasProbs")
    negatives = len(op.attr("custom_neg_classes")) or op.attr("num_neg_samples")
    width = negatives + (label[1] if len(label) == 2 else 1)
    op.set("Cost", (given[0], 1), op.dtype("Input"))
    op.set("SampleLogits", (given[0], width), op.dtype("Input"))
    op.set("SampleLabels", (given[0], width), VarType.INT64)


_ATTRS: dict[str, Any] = {
    "num_total_classes": 2,
    "num_neg_samples": 10,
    "sampler": 0,
    "seed": 0,
    "is_sparse": False,
    "remote_prefetch": False,
    "custom_neg_classes": [],
}
_CUSTOM = ("CustomDistProbs", "CustomDistAlias", "CustomDistAliasProbs")
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
    gradable=("Input", "Weight", "Bias"),
    frozen=("SampleLogits", "SampleLabels"),
    random=True,
    lod_from=None,
)
