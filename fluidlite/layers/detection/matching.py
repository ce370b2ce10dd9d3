"""Matching prior boxes with the boxes of images."""

from __future__ import annotations

from ...framework import Variable
from ...op_functions import run_layer

__all__ = ["bipartite_match", "target_assign"]


def bipartite_match(
    dist_matrix: Variable,
    match_type: str | None = None,
    dist_threshold: float | None = None,
    name: str | None = None,
) -> tuple[Variable, Variable]:
    """Match each prior box with a box (`fluid.layers.bipartite_match`).

    The most similar two are matched, then the most similar of those left, and so on.

    Args:
        dist_matrix: the similarities [boxes, M], a sequence of boxes for each of N images.
        match_type: 'bipartite', the default, or 'per_prediction': prior boxes that are left get the most similar
            box, if they are similar enough.
        dist_threshold: how similar that is; 0.5 by default.
        name: the prefix of the results' names.

    Returns:
        int32 [N, M], numbers of boxes within their image, -1 for none; and how similar the two are, 0 for none.

    Raises:
        TypeError, OperatorError: for arguments that do not fit.
    """
    return run_layer("bipartite_match", locals(), DistMat="dist_matrix")


def target_assign(
    input: Variable,
    matched_indices: Variable,
    negative_indices: Variable | None = None,
    mismatch_value: int | None = None,
    name: str | None = None,
) -> tuple[Variable, Variable]:
    """For each prior box what belongs to the box it is matched with (`fluid.layers.target_assign`).

    Args:
        input: [boxes, M or 1, K], a sequence of boxes for each of N images.
        matched_indices: int32 [N, M], numbers of boxes within their image, -1 for none.
        negative_indices: int32 [rows, 1], a sequence for each image: prior boxes that count without a match.
        mismatch_value: what prior boxes without a match get; 0 by default.
        name: the prefix of the results' names.

    Returns:
        [N, M, K] of the type of `input`, and float32 [N, M, 1]: 1 for prior boxes that count, 0 for others.

    Raises:
        OperatorError: for arguments that do not fit.
    """
    mismatch_value = mismatch_value or 0
    return run_layer(
        "target_assign", locals(), X="input", MatchIndices="matched_indices", NegIndices="negative_indices"
    )
