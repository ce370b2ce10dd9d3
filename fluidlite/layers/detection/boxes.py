"""Boxes: overlaps, offsets and back, edges of images."""

from __future__ import annotations

from collections.abc import Sequence

from ...framework import Variable
from ...op_functions import run_layer

__all__ = [
    "box_clip",
    "box_coder",
    "box_decoder_and_assign",
    "iou_similarity",
    "polygon_box_transform",
]


def iou_similarity(
    x: Variable, y: Variable, box_normalized: bool = True, name: str | None = None
) -> Variable:
    """The intersection over the union of each box of `x` [N, 4] with each of `y` [M, 4]: [N, M].

    Of pixels, with `box_normalized=False`, the last one belongs to the box. The result has the sequences of `x`.
    Follows `fluid.layers.iou_similarity`.
    """
    return run_layer("iou_similarity", locals())


def box_coder(
    prior_box: Variable,
    prior_box_var: Variable | Sequence[float],
    target_box: Variable,
    code_type: str = "encode_center_size",
    box_normalized: bool = True,
    name: str | None = None,
    axis: int = 0,
) -> Variable:
    """Boxes as offsets to prior boxes, or such offsets as boxes (`fluid.layers.box_coder`).

    Offsets are those of the middles in parts of the prior box's sides, and logarithms of the ratios of the sides, all
    divided by the variances.

    Args:
        prior_box: float boxes [M, 4], x and y of two corners.
        prior_box_var: their variances [M, 4], or a list of four numbers.
        target_box: boxes [N, 4] for 'encode_center_size'; offsets [N, M, 4], or [M, N, 4] with `axis=1`, for
            'decode_center_size'.
        code_type: which of the two.
        box_normalized: false for pixels, of which the last one belongs to the box.
        name: the name of the result.
        axis: of offsets, along which axis the prior boxes are repeated.

    Returns:
        [N, M, 4], or the shape of the offsets.

    Raises:
        TypeError, OperatorError: for arguments that do not fit.
    """
    if not isinstance(prior_box_var, (Variable, list)):
        raise TypeError(f"'prior_box_var' of box_coder must be a Variable or a list, got {prior_box_var!r}")
    return run_layer("box_coder", locals(), variance="prior_box_var")


def box_decoder_and_assign(
    prior_box: Variable,
    prior_box_var: Variable,
    target_box: Variable,
    box_score: Variable,
    box_clip: float,
    name: str | None = None,
) -> tuple[Variable, Variable]:
    """Boxes of every class from their offsets, and the best of each (`fluid.layers.box_decoder_and_assign`).

    Args:
        prior_box: float boxes in pixels [N, 4].
        prior_box_var: four variances [4].
        target_box: the offsets for each of C classes [N, 4 C].
        box_score: the scores [N, C] of the classes, of which 0 is the background.
        box_clip: the greatest logarithm of the ratio of two sides.
        name: the prefix of the results' names.

    Returns:
        The boxes of all classes [N, 4 C], and for each the one of the best class but the background [N, 4].

    Raises:
        TypeError, OperatorError: for arguments that do not fit.
    """
    return run_layer("box_decoder_and_assign", locals())


def box_clip(input: Variable, im_info: Variable, name: str | None = None) -> Variable:
    """Each sequence of boxes in pixels cut off at the edges of its image (`fluid.layers.box_clip`).

    `input`: floats [N, ..., 4] with sequences, one for each image. `im_info` [images, 3]: height, width and scale
    of each image; boxes are of the image before it was scaled.
    """
    return run_layer("box_clip", locals())


def polygon_box_transform(input: Variable, name: str | None = None) -> Variable:
    """Corners from distances to places 4 pixels apart (`fluid.layers.polygon_box_transform`).

    `input`: floats [N, 2 K, H, W]; even channels are distances of x, odd ones of y. The result is of the same shape.
    """
    return run_layer("polygon_box_transform", locals())
