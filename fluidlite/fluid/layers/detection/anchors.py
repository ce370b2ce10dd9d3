"""Boxes: prior boxes and anchors, overlaps and offsets, matching with the boxes of images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....base.errors import ArgumentError
from ....framework import Variable
from ...op_functions import run_layer
from ..checks import check_lists

__all__ = [
    "anchor_generator",
    "bipartite_match",
    "box_clip",
    "box_coder",
    "box_decoder_and_assign",
    "density_prior_box",
    "iou_similarity",
    "polygon_box_transform",
    "prior_box",
    "target_assign",
]

Numbers = float | Sequence[float] | None


def _floats(value: Any) -> list[float]:
    """A number, or several, as a list."""
    if value is None:
        return []
    return [float(v) for v in (value if isinstance(value, (list, tuple)) else [value])]


def _pair(steps: Any, name: str, layer: str) -> list[float]:
    if not isinstance(steps, (list, tuple)) or len(steps) != 2:
        raise ArgumentError(f"'{name}' of {layer} must be two numbers, for width and height, got {steps!r}")
    return [float(step) for step in steps]


def prior_box(
    input: Variable,
    image: Variable,
    min_sizes: Numbers,
    max_sizes: Numbers = None,
    aspect_ratios: Numbers = (1.0,),
    variance: Sequence[float] = (0.1, 0.1, 0.2, 0.2),
    flip: bool = False,
    clip: bool = False,
    steps: Sequence[float] = (0.0, 0.0),
    offset: float = 0.5,
    name: str | None = None,
    min_max_aspect_ratios_order: bool = False,
) -> tuple[Variable, Variable]:
    """Boxes around each place of a feature map, as parts of the image (`fluid.layers.prior_box`; Liu et al. 2016).

    Args:
        input: the feature map [N, C, H, W]; only its shape matters.
        image: the images [N, C, height, width]; only their shape matters.
        min_sizes: sides of squares in pixels.
        max_sizes: for each of them a greater size; adds a square between the two.
        aspect_ratios: width over height of further boxes of each of the `min_sizes`.
        variance: four numbers that go along with each box.
        flip: also boxes of the inverse ratios.
        clip: whether boxes end at the edges of the image.
        steps: pixels between two places, across and downwards; [0, 0]: as many as the sizes say.
        offset: where in a place the middle of boxes is.
        name: the prefix of the results' names.
        min_max_aspect_ratios_order: the squares of both sizes first, as Caffe has them, then the other ratios.

    Returns:
        Boxes and variances [H, W, boxes, 4]; of each box x and y of two corners, from 0 to 1.

    Raises:
        TypeError, ValueError, OperatorError: for arguments that do not fit.
    """
    step_w, step_h = _pair(steps, "steps", "prior_box")
    min_sizes, max_sizes, variance = _floats(min_sizes), _floats(max_sizes), _floats(variance)
    aspect_ratios = _floats(aspect_ratios)
    if not max_sizes or max_sizes[0] <= 0:
        max_sizes = None
    return run_layer("prior_box", locals(), without=("steps",), stop_gradient=True, variances="variance")


def density_prior_box(
    input: Variable,
    image: Variable,
    densities: Sequence[int] | None = None,
    fixed_sizes: Sequence[float] | None = None,
    fixed_ratios: Sequence[float] | None = None,
    variance: Sequence[float] = (0.1, 0.1, 0.2, 0.2),
    clip: bool = False,
    steps: Sequence[float] = (0.0, 0.0),
    offset: float = 0.5,
    flatten_to_2d: bool = False,
    name: str | None = None,
) -> tuple[Variable, Variable]:
    """Boxes in a denser grid than the places of a feature map (`fluid.layers.density_prior_box`; Zhang et al. 2017).

    Args:
        input, image, variance, clip, steps, offset, name: as those of `prior_box`.
        densities: for each of `fixed_sizes` how many boxes of it there are at a place, in each direction.
        fixed_sizes: sides of squares in pixels.
        fixed_ratios: width over height of the boxes of each size.
        flatten_to_2d: whether the results are [boxes of all places, 4].

    Returns:
        Boxes and variances [H, W, boxes, 4]; of each box x and y of two corners, from 0 to 1.

    Raises:
        TypeError, ValueError, OperatorError: for arguments that do not fit.
    """
    check_lists("density_prior_box", densities=densities, fixed_sizes=fixed_sizes, fixed_ratios=fixed_ratios)
    step_w, step_h = _pair(steps, "steps", "density_prior_box")
    densities = [int(n) for n in densities or ()]
    fixed_sizes, fixed_ratios, variance = _floats(fixed_sizes), _floats(fixed_ratios), _floats(variance)
    return run_layer(
        "density_prior_box", locals(), without=("steps",), stop_gradient=True, variances="variance"
    )


def anchor_generator(
    input: Variable,
    anchor_sizes: Numbers = None,
    aspect_ratios: Numbers = None,
    variance: Sequence[float] = (0.1, 0.1, 0.2, 0.2),
    stride: Sequence[float] | None = None,
    offset: float = 0.5,
    name: str | None = None,
) -> tuple[Variable, Variable]:
    """Boxes around each place of a feature map, in pixels (`fluid.layers.anchor_generator`; Ren et al. 2015).

    Args:
        input: the feature map [N, C, H, W]; only its shape matters.
        anchor_sizes: sides of squares in pixels, from which the boxes of each ratio are made.
        aspect_ratios: height over width.
        variance: four numbers that go along with each box.
        stride: pixels between two places, across and downwards.
        offset: where in a place the middle of boxes is.
        name: the prefix of the results' names.

    Returns:
        Anchors and variances [H, W, boxes, 4]; of each box x and y of two corners.

    Raises:
        TypeError, ValueError, OperatorError: for arguments that do not fit.
    """
    anchor_sizes, aspect_ratios = _floats(anchor_sizes), _floats(aspect_ratios)
    variance, stride = _floats(variance), _pair(stride, "stride", "anchor_generator")
    return run_layer("anchor_generator", locals(), stop_gradient=True, variances="variance")


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
