"""Matching of prior boxes to the boxes of images, targets for them, and hard negative mining.

Follows the single shot detector (Liu et al. 2016). Boxes of an image are a sequence; prior boxes are columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...base.dtypes import VarType
from ..host_fallback import hosted
from ..registry import LodArray, OperatorError, OpView, Sequences, register
from ..sequence import Lods, deep, input_lod, levels, offsets_of

_LEAST = 1e-6
"""Similarities below this never match."""


def _rows(lod: Lods, slot: str, count: int) -> list[tuple[int, int]]:
    """The range of rows of each image; all are one image's without LoD."""
    known = input_lod(lod, slot)
    offsets = known[-1].tolist() if known else [0, count]
    return list(zip(offsets[:-1], offsets[1:], strict=True))


def greedy_match(similarity: np.ndarray) -> Iterator[tuple[int, int]]:
    """(row, column) of the greatest similarity [rows, columns], then of the greatest in the other rows and columns."""
    left = np.array(similarity)
    left[~(left >= _LEAST)] = -np.inf
    for _ in range(min(left.shape)):
        # Ties: the first column, then the first row.
        column, row = divmod(int(left.T.argmax()), len(left))
        if left[row, column] == -np.inf:
            return
        yield row, column
        left[row] = -np.inf
        left[:, column] = -np.inf


@hosted
def _bipartite_match(xp: Any, DistMat: Any, match_type: str, dist_threshold: float, lod: Lods) -> Any:
    images = _rows(lod, "DistMat", len(DistMat))
    indices = np.full((len(images), DistMat.shape[1]), -1, np.int32)
    found = np.zeros(indices.shape, DistMat.dtype)
    for image, (begin, end) in enumerate(images):
        similarity = DistMat[begin:end]
        for row, column in greedy_match(similarity):
            indices[image, column], found[image, column] = row, similarity[row, column]
        if match_type == "per_prediction" and len(similarity):
            best = similarity.argmax(axis=0)
            value = similarity.max(axis=0)
            more = (indices[image] < 0) & (value >= max(_LEAST, np.float32(dist_threshold)))
            indices[image, more], found[image, more] = best[more], value[more]
    return LodArray(indices, ()), LodArray(found, ())


def _infer_match(op: OpView) -> None:
    shape = op.shape("DistMat")
    if len(shape) != 2:
        raise op.fail(f"DistMat must be [boxes, prior boxes], got {list(shape)}")
    if op.attr("match_type") not in ("bipartite", "per_prediction"):
        raise op.fail(f"match_type must be bipartite or per_prediction, got {op.attr('match_type')!r}")
    images = -1 if not op.exact else op.sequences("DistMat") if op.lod("DistMat") else 1
    op.set("ColToRowMatchIndices", (images, shape[1]), VarType.INT32)
    op.set("ColToRowMatchDist", (images, shape[1]), op.dtype("DistMat"))


register(
    "bipartite_match",
    inputs=("DistMat",),
    outputs=("ColToRowMatchIndices", "ColToRowMatchDist"),
    attrs={"match_type": "bipartite", "dist_threshold": 0.5},
    infer=_infer_match,
    kernel=_bipartite_match,
    no_grad=("ColToRowMatchIndices", "ColToRowMatchDist"),
    sequences=Sequences(takes_lod=True, inferred=True),
    doc="For each column and image the row that it is matched with, or -1, and how similar the two are.",
)


@hosted
def _target_assign(
    xp: Any, X: Any, MatchIndices: Any, NegIndices: Any, mismatch_value: int, lod: Lods
) -> Any:
    offsets = levels("target_assign", lod, "X")[-1]
    images, columns = MatchIndices.shape
    if len(offsets) - 1 != images:
        raise OperatorError(
            f"operator target_assign: X has {len(offsets) - 1} sequences for the {images} rows of MatchIndices"
        )
    matched = MatchIndices >= 0
    rows = np.where(matched, MatchIndices + offsets[:-1, None], 0)
    if matched.any() and rows.max() >= len(X):
        raise OperatorError(f"operator target_assign: a match is row {rows.max()} of {len(X)}")
    out = np.full((images, columns, X.shape[2]), mismatch_value, X.dtype)
    at = np.broadcast_to(np.arange(columns) % X.shape[1], rows.shape)
    out[matched] = X[rows[matched], at[matched]]
    weight = matched.astype(np.float32)[..., None]
    if NegIndices is not None:
        for image, (begin, end) in enumerate(_rows(lod, "NegIndices", len(NegIndices))):
            negative = NegIndices[begin:end].reshape(-1)
            out[image, negative], weight[image, negative] = mismatch_value, 1
    return LodArray(out, ()), LodArray(weight, ())


def _infer_assign(op: OpView) -> None:
    shape, match = op.shape("X"), op.shape("MatchIndices")
    if len(shape) != 3 or len(match) != 2:
        raise op.fail(
            f"X must be [boxes, columns, width] and MatchIndices [images, columns], got {list(shape)} and {list(match)}"
        )
    deep(op, "X")
    op.set("Out", (*match, shape[2]), op.dtype("X"))
    op.set("OutWeight", (*match, 1), VarType.FP32)


register(
    "target_assign",
    inputs=("X", "MatchIndices", "NegIndices?"),
    outputs=("Out", "OutWeight"),
    attrs={"mismatch_value": 0},
    infer=_infer_assign,
    kernel=_target_assign,
    no_grad=("Out", "OutWeight"),
    sequences=Sequences(takes_lod=True, inferred=True),
    doc="For each column and image the row that it is matched with, and 1; mismatch_value and 0 without a match.",
)


def _hardest(loss: np.ndarray, eligible: np.ndarray, count: int) -> np.ndarray:
    """The columns of the `count` greatest losses among the eligible ones, in ascending order."""
    columns = np.flatnonzero(eligible)
    return np.sort(columns[np.argsort(-loss[columns], kind="stable")[: max(count, 0)]])


@hosted
def _mine(
    xp: Any,
    ClsLoss: Any,
    LocLoss: Any,
    MatchIndices: Any,
    MatchDist: Any,
    neg_pos_ratio: float,
    neg_dist_threshold: float,
    sample_size: int,
    mining_type: str,
    lod: Lods,
) -> Any:
    losses = ClsLoss.reshape(MatchIndices.shape)
    updated = MatchIndices.copy()
    negatives = []
    for image, match in enumerate(MatchIndices):
        if mining_type == "max_negative":
            eligible = (match == -1) & (MatchDist[image] < np.float32(neg_dist_threshold))
            count = int(np.float32((match != -1).sum()) * np.float32(neg_pos_ratio))
            negatives.append(_hardest(losses[image], eligible, count))
            continue
        both = losses[image] + (0 if LocLoss is None else LocLoss.reshape(losses.shape)[image])
        chosen = _hardest(both, np.ones(len(match), bool), sample_size)
        updated[image, np.setdiff1d(np.flatnonzero(match > -1), chosen)] = -1
        negatives.append(chosen[match[chosen] == -1])
    indices = np.concatenate([*negatives, np.zeros(0, np.int64)]).astype(np.int32).reshape(-1, 1)
    offsets = offsets_of(np.array([len(part) for part in negatives], np.int64))
    return LodArray(indices, (offsets,)), LodArray(updated, ())


def _infer_mine(op: OpView) -> None:
    if op.attr("mining_type") not in ("max_negative", "hard_example"):
        raise op.fail(f"mining_type must be max_negative or hard_example, got {op.attr('mining_type')!r}")
    if op.attr("mining_type") == "hard_example" and op.attr("sample_size") <= 0:
        raise op.fail(f"sample_size must be positive for hard_example, got {op.attr('sample_size')}")
    op.set("NegIndices", (-1, 1), VarType.INT32)
    op.set("UpdatedMatchIndices", op.shape("MatchIndices"), VarType.INT32)


register(
    "mine_hard_examples",
    inputs=("ClsLoss", "LocLoss?", "MatchIndices", "MatchDist"),
    outputs=("NegIndices", "UpdatedMatchIndices"),
    attrs={
        "neg_pos_ratio": 1.0,
        "neg_dist_threshold": 0.5,
        "sample_size": 0,
        "mining_type": "max_negative",
    },
    infer=_infer_mine,
    kernel=_mine,
    no_grad=("NegIndices", "UpdatedMatchIndices"),
    sequences=Sequences(takes_lod=True),
    doc="The columns without a match that cost most, as a sequence for each image, and what matches are left.",
)
