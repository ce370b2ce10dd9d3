"""Boxes around the places of feature maps: prior boxes (Liu et al. 2016) and anchors (Ren et al. 2015)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...base.errors import ArgumentError
from ...framework import Variable
from ...op_functions import run_layer
from ..checks import check_lists

__all__ = ["anchor_generator", "density_prior_box", "prior_box"]

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
