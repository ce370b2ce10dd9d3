"""Boxes of given sizes around the places of a feature map: `prior_box`, `density_prior_box`, `anchor_generator`.

They follow from shapes and attributes alone. Boxes are corners: x and y of the upper left, x and y of the lower right.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...backend.functions import constant
from ..infer import product
from ..registry import OpView, Sequences, register

Sides = list[tuple[float, float]]
Steps = tuple[float, float]
Extent = tuple[int, int]

_SAME = 1e-6
"""Aspect ratios that are closer than this are one."""


def expanded_ratios(aspect_ratios: Sequence[float], flip: bool) -> list[float]:
    """1 and the different `aspect_ratios`; with `flip` each is followed by its inverse."""
    result = [1.0]
    for ratio in aspect_ratios:
        if all(abs(ratio - other) >= _SAME for other in result):
            result += [ratio, 1.0 / ratio] if flip else [ratio]
    return result


def prior_sides(
    min_sizes: Sequence[float], max_sizes: Sequence[float], ratios: Sequence[float], squares_first: bool
) -> Sides:
    """Width and height, in pixels, of each box at a place."""
    result: Sides = []
    for k, size in enumerate(min_sizes):
        between = [math.sqrt(size * max_sizes[k])] * 2 if max_sizes else []
        shaped = [(size * math.sqrt(ratio), size / math.sqrt(ratio)) for ratio in ratios]
        others = [side for side, ratio in zip(shaped, ratios, strict=True) if abs(ratio - 1.0) >= _SAME]
        square = [(between[0], between[1])] if between else []
        result += [(size, size), *square, *others] if squares_first else [*shaped, *square]
    return result


def _steps(feature: Extent, image: Extent, step_h: float, step_w: float) -> Steps:
    """The vertical and horizontal stride of positions, in pixels of the image; the ratio of sizes if one is 0."""
    if step_h == 0 or step_w == 0:
        return image[0] / feature[0], image[1] / feature[1]
    return step_h, step_w


def _corners(ys: np.ndarray, xs: np.ndarray, sides: Sides) -> np.ndarray:
    """[height, width, sides, 4]: the boxes around each place."""
    halves = np.array(sides, np.float32) / 2
    middle = np.empty((len(ys), len(xs), len(sides), 2), np.float32)
    middle[..., 0], middle[..., 1] = xs[None, :, None], ys[:, None, None]
    return np.concatenate([middle - halves, middle + halves], axis=-1)


def _shared(image: Extent) -> np.ndarray:
    high, wide = image
    return np.array([wide, high, wide, high], np.float32)


def _prior_boxes(
    feature: Extent,
    image: Extent,
    sides: tuple[tuple[float, float], ...],
    steps: Steps,
    offset: float,
    clip: bool,
) -> np.ndarray:
    down, across = _steps(feature, image, *steps)
    ys, xs = ((np.arange(n) + offset) * step for n, step in zip(feature, (down, across), strict=True))
    boxes = _corners(ys, xs, list(sides)) / _shared(image)
    return np.clip(boxes, 0, 1) if clip else boxes


def _variances(shape: tuple[int, ...], variances: tuple[float, ...]) -> np.ndarray:
    return np.broadcast_to(np.array(variances, np.float32), (*shape, 4)).copy()


def _with_variances(xp: Any, boxes: Any, variances: Sequence[float], dtype: Any) -> tuple[Any, Any]:
    spread = constant(xp, _variances, boxes.shape[:-1], tuple(variances))
    return boxes.astype(dtype), spread.astype(dtype)


def _prior_box(xp: Any, Input: Any, Image: Any, **attrs: Any) -> Any:
    boxes = constant(
        xp,
        _prior_boxes,
        Input.shape[2:],
        Image.shape[2:],
        tuple(_prior_sides(attrs)),
        (attrs["step_h"], attrs["step_w"]),
        attrs["offset"],
        attrs["clip"],
    )
    return _with_variances(xp, boxes, attrs["variances"], Input.dtype)


def _prior_sides(attrs: dict[str, Any]) -> Sides:
    ratios = expanded_ratios(attrs["aspect_ratios"], attrs["flip"])
    return prior_sides(attrs["min_sizes"], attrs["max_sizes"], ratios, attrs["min_max_aspect_ratios_order"])


def _check_images(op: OpView, *slots: str) -> None:
    for slot in slots:
        if len(op.shape(slot)) != 4:
            raise op.fail(f"{slot} must be [batch, channels, height, width], got {list(op.shape(slot))}")


def _check_variances(op: OpView) -> None:
    given = op.attr("variances")
    if len(given) != 4 or min(given) <= 0:
        raise op.fail(f"variances must be 4 positive numbers, got {list(given)}")


def _set_boxes(op: OpView, out: str, shape: Sequence[int]) -> None:
    for slot in (out, "Variances"):
        op.set(slot, (*shape, 4), op.dtype("Input"))


_PRIOR: dict[str, Any] = {
    "min_sizes": [],
    "max_sizes": [],
    "aspect_ratios": [],
    "variances": [0.1, 0.1, 0.2, 0.2],
    "flip": True,
    "clip": True,
    "step_w": 0.0,
    "step_h": 0.0,
    "offset": 0.5,
    "min_max_aspect_ratios_order": False,
    "use_mkldnn": False,
    "use_quantizer": False,
}


def _infer_prior_box(op: OpView) -> None:
    _check_images(op, "Input", "Image")
    _check_variances(op)
    least, most = op.attr("min_sizes"), op.attr("max_sizes")
    if not least or min(least) <= 0:
        raise op.fail(f"min_sizes must be positive numbers, got {list(least)}")
    if most and (len(most) != len(least) or any(b <= a for a, b in zip(least, most, strict=True))):
        raise op.fail(f"max_sizes must be greater than the min_sizes {list(least)}, got {list(most)}")
    if any(ratio <= 0 for ratio in op.attr("aspect_ratios")):
        raise op.fail(f"aspect_ratios must be positive, got {list(op.attr('aspect_ratios'))}")
    count = len(_prior_sides({name: op.attr(name) for name in _PRIOR}))
    _set_boxes(op, "Boxes", (*op.shape("Input")[2:], count))


def _density_boxes(
    feature: Extent,
    image: Extent,
    sizes: tuple[float, ...],
    ratios: tuple[float, ...],
    densities: tuple[int, ...],
    steps: Steps,
    offset: float,
    clip: bool,
) -> np.ndarray:
    down, across = _steps(feature, image, *steps)
    ys, xs = ((np.arange(n) + offset) * step for n, step in zip(feature, (down, across), strict=True))
    mean = int((across + down) * 0.5)
    made = []
    for size, density in zip(sizes, densities, strict=True):
        shift = mean // density
        first = shift / 2.0 - mean / 2.0
        for ratio in ratios:
            side = [(size * math.sqrt(ratio), size / math.sqrt(ratio))]
            made += [
                _corners(ys + first + i * shift, xs + first + j * shift, side)
                for i in range(density)
                for j in range(density)
            ]
    boxes = np.concatenate(made, axis=2) / _shared(image)
    boxes[..., :2] = np.maximum(boxes[..., :2], 0)
    boxes[..., 2:] = np.minimum(boxes[..., 2:], 1)
    return np.clip(boxes, 0, 1) if clip else boxes


def _density_prior_box(xp: Any, Input: Any, Image: Any, flatten_to_2d: bool, **attrs: Any) -> Any:
    sizes, ratios, densities = (tuple(attrs[k]) for k in ("fixed_sizes", "fixed_ratios", "densities"))
    where = (attrs["step_h"], attrs["step_w"]), attrs["offset"], attrs["clip"]
    extents = Input.shape[2:], Image.shape[2:]
    boxes = constant(xp, _density_boxes, *extents, sizes, ratios, densities, *where)
    boxes = boxes.reshape(-1, 4) if flatten_to_2d else boxes
    return _with_variances(xp, boxes, attrs["variances"], Input.dtype)


def _infer_density(op: OpView) -> None:
    _check_images(op, "Input", "Image")
    _check_variances(op)
    sizes, densities, ratios = (op.attr(name) for name in ("fixed_sizes", "densities", "fixed_ratios"))
    if len(sizes) != len(densities) or min([1, *sizes, *densities]) <= 0:
        raise op.fail(
            f"there must be a density for each of the fixed_sizes {list(sizes)}, got {list(densities)}"
        )
    shape = (*op.shape("Input")[2:], len(ratios) * sum(n * n for n in densities))
    if op.attr("flatten_to_2d"):
        shape = (product(shape) if op.exact else -1,)
    _set_boxes(op, "Boxes", shape)


def _anchor_boxes(
    feature: Extent,
    sizes: tuple[float, ...],
    ratios: tuple[float, ...],
    stride: tuple[float, float],
    offset: float,
) -> np.ndarray:
    across, down = stride
    sides = []
    for ratio in ratios:
        wide = _half_away(math.sqrt(across * down / ratio))
        high = _half_away(wide * ratio)
        sides += [(size / across * wide - 1, size / down * high - 1) for size in sizes]
    xs = np.arange(feature[1]) * across + offset * (across - 1)
    ys = np.arange(feature[0]) * down + offset * (down - 1)
    return _corners(ys, xs, sides)


def _half_away(number: float) -> float:
    """Round to the nearest integer, halves up."""
    return math.floor(number + 0.5)


def _anchor_generator(xp: Any, Input: Any, **attrs: Any) -> Any:
    given = (tuple(attrs[name]) for name in ("anchor_sizes", "aspect_ratios", "stride"))
    boxes = constant(xp, _anchor_boxes, Input.shape[2:], *given, attrs["offset"])
    return _with_variances(xp, boxes, attrs["variances"], Input.dtype)


def _infer_anchors(op: OpView) -> None:
    _check_images(op, "Input")
    _check_variances(op)
    sizes, ratios, stride = (op.attr(name) for name in ("anchor_sizes", "aspect_ratios", "stride"))
    if len(stride) != 2 or min([1, *stride, *sizes, *ratios]) <= 0:
        raise op.fail(
            f"anchor_sizes, aspect_ratios and both strides must be positive, got {list(sizes)}, {list(ratios)} and "
            f"{list(stride)}"
        )
    _set_boxes(op, "Anchors", (*op.shape("Input")[2:], len(sizes) * len(ratios)))


def _register(
    op_type: str,
    inputs: tuple[str, ...],
    out: str,
    attrs: dict[str, Any],
    infer: Callable[[OpView], None],
    kernel: Callable[..., Any],
    doc: str,
) -> None:
    register(
        op_type,
        inputs=inputs,
        outputs=(out, "Variances"),
        attrs=attrs,
        infer=infer,
        kernel=kernel,
        no_grad=(out, "Variances"),
        sequences=Sequences(source=None),
        doc=doc,
    )


_register(
    "prior_box",
    ("Input#", "Image#"),
    "Boxes",
    _PRIOR,
    _infer_prior_box,
    _prior_box,
    "Boxes of the given sizes and ratios around each place of Input, as parts of Image (Liu et al. 2016).",
)
_register(
    "density_prior_box",
    ("Input#", "Image#"),
    "Boxes",
    {
        "variances": [0.1, 0.1, 0.2, 0.2],
        "clip": True,
        "flatten_to_2d": False,
        "step_w": 0.0,
        "step_h": 0.0,
        "offset": 0.5,
        "fixed_sizes": [],
        "fixed_ratios": [],
        "densities": [],
    },
    _infer_density,
    _density_prior_box,
    "Boxes in a denser grid than the places of Input, as parts of Image (Zhang et al. 2017).",
)
_register(
    "anchor_generator",
    ("Input#",),
    "Anchors",
    {
        "anchor_sizes": [],
        "aspect_ratios": [],
        "variances": [0.1, 0.1, 0.2, 0.2],
        "stride": [],
        "offset": 0.5,
    },
    _infer_anchors,
    _anchor_generator,
    "Boxes of the given sizes and ratios around each place of Input, in pixels (Ren et al. 2015).",
)
