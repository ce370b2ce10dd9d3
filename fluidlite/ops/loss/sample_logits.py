"""sample_logits: the scores of the true classes and of some others, of many."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._ext import rng
from ...base.dtypes import VarType
from ..grad_pairs import register_pair
from ..host_fallback import hosted
from ..registry import Effects, OperatorError, OpView, Sequences
from ..tensor.random_ import stream_of
from ..value_checks import require_in_range

_HIT = 1e20
"""Subtracted from the score of a sampled class that is a true one (an accidental hit)."""


def _drawn(classes: int, count: int, seed: int) -> tuple[Any, int]:
    """`count` different log-uniform samples of classes, and the number of draws that they took.

    They are those of Fluid 1.8 for the same seed.
    """
    if count > classes:
        raise OperatorError(f"operator sample_logits: num_samples must be at most {classes}, got {count}")
    draws = max(4 * count, 64)
    while True:
        share = rng.sampler_bits(seed, draws) / 2.0**64
        span = float(np.float32(math.log(classes + 1)))
        found = (np.exp(share * span).astype(np.int64) - 1) % classes
        _, places = np.unique(found, return_index=True)
        if len(places) >= count:
            first = np.sort(places)[:count]
            return found[first], int(first[-1]) + 1 if count else 0
        draws *= 4


def _expected(labels: Any, classes: int, tries: int, count: int) -> Any:
    """The probability of each class within `tries` draws, or its expected count if all `count` draws differed."""
    once = np.log((labels + 2.0) / (labels + 1.0)) / float(np.float32(math.log(classes + 1)))
    return once * count if tries == count else -np.expm1(tries * np.log1p(-once))


@hosted
def _sample_logits(
    xp: Any,
    Logits: Any,
    Labels: Any,
    CustomizedSamples: Any,
    CustomizedProbabilities: Any,
    use_customized_samples: bool,
    remove_accidental_hits: bool,
    num_samples: int,
    seed: int,
) -> Any:
    rows, classes = Logits.shape
    require_in_range(np, "sample_logits", "Labels", Labels, classes, "classes")
    true = Labels.shape[1]
    if use_customized_samples:
        samples, chances = CustomizedSamples, CustomizedProbabilities
        require_in_range(np, "sample_logits", "CustomizedSamples", samples, classes, "classes")
    else:
        others, tries = _drawn(classes, num_samples, stream_of(seed))
        samples = np.concatenate([Labels, np.tile(others, (rows, 1))], axis=1)
        chances = _expected(samples, classes, tries, num_samples)
    scores = np.take_along_axis(Logits, samples, 1).astype(np.float64)
    if remove_accidental_hits:
        hits = (samples[:, true:, None] == samples[:, None, :true]).any(axis=2)
        scores[:, true:] -= np.where(hits, _HIT, 0)
    scores = np.clip(scores - np.log(chances), -1e30, 1e30)
    labels = np.tile(np.arange(true), (rows, 1))
    return (
        xp.asarray(samples, dtype="int64"),
        xp.asarray(chances, dtype=Logits.dtype),
        xp.asarray(scores, dtype=Logits.dtype),
        xp.asarray(labels, dtype="int64"),
        xp.zeros((*Logits.shape, 0), Logits.dtype),
        xp.zeros((*Labels.shape, 0), "int64"),
    )


def _sample_logits_grad(xp: Any, LogitsDim: Any, Samples: Any, SampledLogits_grad: Any) -> Any:
    gradient = xp.zeros(LogitsDim.shape[:-1], SampledLogits_grad.dtype)
    where = xp.arange(len(gradient))[:, None], Samples
    xp.add.at(gradient, where, SampledLogits_grad)
    return gradient


def _infer(op: OpView) -> None:
    logits, labels = op.shape("Logits"), op.shape("Labels")
    if len(logits) != 2 or len(labels) != 2:
        raise op.fail(
            f"Logits must be [rows, classes] and Labels [rows, true classes], got {list(logits)}, {list(labels)}"
        )
    if op.attr("use_customized_samples"):
        for slot in ("CustomizedSamples", "CustomizedProbabilities"):
            if not op.has(slot):
                raise op.fail(f"use_customized_samples needs {slot}")
    width = labels[1] + op.attr("num_samples") if labels[1] >= 0 else -1
    op.set("Samples", (logits[0], width), VarType.INT64)
    op.set("Probabilities", (logits[0], width), op.dtype("Logits"))
    op.set("SampledLogits", (logits[0], width), op.dtype("Logits"))
    op.set("SampledLabels", labels, VarType.INT64)
    op.set("LogitsDim", (*logits, 0), op.dtype("Logits"))
    op.set("LabelsDim", (*labels, 0), VarType.INT64)


def _infer_back(op: OpView) -> None:
    op.set("Logits@GRAD", op.shape("LogitsDim")[:-1], op.dtype("SampledLogits@GRAD"))


register_pair(
    "sample_logits",
    ("Logits", "Labels", "CustomizedSamples?", "CustomizedProbabilities?"),
    _sample_logits,
    _sample_logits_grad,
    _infer,
    "The scores of the true classes and of num_samples drawn ones, less the logarithm of how likely these come up.",
    outputs=("Samples", "Probabilities", "SampledLogits", "SampledLabels", "LogitsDim", "LabelsDim"),
    attrs={
        "use_customized_samples": False,
        "uniq": True,
        "remove_accidental_hits": True,
        "num_samples": 1,
        "seed": 0,
    },
    keep=(),
    keep_out=("LogitsDim#", "LabelsDim#", "Samples"),
    no_grad=(
        "Labels",
        "CustomizedSamples",
        "CustomizedProbabilities",
        "Samples",
        "Probabilities",
        "SampledLabels",
        "LogitsDim",
        "LabelsDim",
    ),
    effects=Effects(random=True),
    sequences=Sequences(source=None),
    infer_back=_infer_back,
)
