"""The boxes that a detector found: non-maximum suppression."""

from __future__ import annotations

from types import NoneType
from typing import Any

from ...base.errors import ArgumentError
from ...framework import Variable
from ...layer_helper import LayerHelper
from ...op_functions import of_kind, run_layer

__all__ = ["locality_aware_nms", "matrix_nms", "multiclass_nms"]


def detected(
    op_type: str, arguments: dict[str, Any], layer: str | None = None, without: tuple[str, ...] = ()
) -> Any:
    """The boxes that `op_type` chooses for the `arguments` of a layer; with `return_index` also which these are.

    No gradient goes through either. `layer`: the prefix of the results' names; by default the operator.
    `without`: as of `run_layer`.
    """
    _check_numbers(op_type, arguments, int, float, NoneType)
    helper = LayerHelper(layer or op_type, name=arguments.get("name"))
    made = run_layer(
        op_type, arguments, without=("return_index", *without), stop_gradient=True, helper=helper
    )
    results = made if isinstance(made, tuple) else (made,)
    return results if arguments.get("return_index") else results[0]


def _check_numbers(op_type: str, arguments: dict[str, Any], *kinds: type) -> None:
    for number in ("score_threshold", "nms_threshold", "nms_eta"):
        if number in arguments and not isinstance(arguments[number], kinds):
            raise TypeError(f"'{number}' of {op_type} must be a number, got {arguments[number]!r}")


def _suppressed(
    kind: str,
    bboxes: Variable,
    scores: Variable,
    score_threshold: float,
    nms_top_k: int,
    keep_top_k: int,
    nms_threshold: float = 0.3,
    normalized: bool = True,
    nms_eta: float = 1.0,
    background_label: int = 0,
    name: str | None = None,
) -> Variable:
    if kind == "locality_aware_nms" and (len(scores.shape) != 3 or scores.shape[1] != 1):
        raise ArgumentError(f"'scores' of locality_aware_nms must be [N, 1, M], got {list(scores.shape)}")
    _check_numbers(kind, locals(), int, float)
    return detected(kind, locals(), without=("kind",))


multiclass_nms = of_kind(
    _suppressed,
    "multiclass_nms",
    """Of the boxes of each class those that no better one overlaps (`fluid.layers.multiclass_nms`).

    Args:
        bboxes: floats [N, M, 4], x and y of two corners, or [N, M, 8], [N, M, 16], ... for convex polygons; boxes of
            their own for each class: [rows, classes, 4] with sequences.
        scores: [N, classes, M], or for boxes of their own [rows, classes].
        score_threshold: scores that are not greater do not count.
        nms_top_k: how many boxes of a class are considered; -1: all.
        keep_top_k: how many boxes of an image are kept; -1: all.
        nms_threshold: how much, intersection over union, boxes may overlap.
        normalized: false for pixels, of which the last one belongs to the box.
        nms_eta: below 1 the threshold is multiplied by it after each box, as long as it is above 0.5.
        background_label: the class that is left out; -1: none.
        name: the name of the result.

    Returns:
        [found, 2 + width]: class, score and box of each, a sequence for each image. If there are none at all, [1, 1]
        with -1.

    Raises:
        TypeError, OperatorError: for arguments that do not fit.
    """,
)
locality_aware_nms = of_kind(
    _suppressed,
    "locality_aware_nms",
    """Neighbouring boxes that overlap put together, then as `multiclass_nms` (`fluid.layers.locality_aware_nms`).

    `bboxes` is [1, M, 4], or [1, M, 8] and so on for convex polygons, `scores` [1, 1, M]; the other arguments and the
    result are those of `multiclass_nms`. Follows Zhou et al. (2017).
    """,
    background_label=-1,
)


def multiclass_nms2(
    bboxes: Variable,
    scores: Variable,
    score_threshold: float,
    nms_top_k: int,
    keep_top_k: int,
    nms_threshold: float = 0.3,
    normalized: bool = True,
    nms_eta: float = 1.0,
    background_label: int = 0,
    return_index: bool = False,
    name: str | None = None,
) -> Variable | tuple[Variable, Variable]:
    """`multiclass_nms` that gives [0, 2 + width] for no boxes (`fluid.contrib.layers.multiclass_nms2`).

    With `return_index` also, as [found, 1], which of the boxes of all images each one is; of boxes of their own for
    each class, row times classes plus class.
    """
    return detected("multiclass_nms2", locals())


def matrix_nms(
    bboxes: Variable,
    scores: Variable,
    score_threshold: float,
    post_threshold: float,
    nms_top_k: int,
    keep_top_k: int,
    use_gaussian: bool = False,
    gaussian_sigma: float = 2.0,
    background_label: int = 0,
    normalized: bool = True,
    return_index: bool = False,
    name: str | None = None,
) -> Variable | tuple[Variable, Variable]:
    """Boxes by scores that are less where better ones overlap them (`fluid.layers.matrix_nms`; Wang et al. 2020).

    Args:
        bboxes: floats [N, M, 4].
        scores: [N, classes, M].
        score_threshold: scores that are not greater do not count.
        post_threshold: nor do those that are not greater when they have been made less.
        use_gaussian: scores are made less by a Gaussian of `gaussian_sigma`, and linearly otherwise.
        return_index: also which of the boxes of all images each one is, as [found, 1].
        nms_top_k, keep_top_k, background_label, normalized, name: as those of `multiclass_nms`.

    Returns:
        [found, 6]: class, score and box of each, best first, a sequence for each image.

    Raises:
        TypeError, OperatorError: for arguments that do not fit.
    """
    return detected("matrix_nms", locals())
