"""Max and average pooling over two or three spatial dimensions, with indices, back, and in pyramids of bins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...backend.functions import constant
from ...base.dtypes import VarType
from ...base.windows import channels_last, resolve_pads, window_counts, window_spans
from ..grad_pairs import register_pair
from ..infer import product
from ..native import typed_call
from ..registry import Call, OpView, Sequences, Shape, grad_name
from ..value_checks import require_in_range

# Max and average pooling over two or three spatial dimensions, with their gradients.
#
# The reference kernels gather all windows at once: for place o and element k of its window, `flat[o, k]` is an index
# into the flattened image and `valid[o, k]` is true if it is inside.

DOUT, DX = grad_name("Out"), grad_name("X")


def _windows(sizes: Shape, spans: tuple[tuple[Any, ...], ...]) -> tuple[np.ndarray, np.ndarray]:
    """`flat` and `valid` of shape [places, elements of the largest window]."""
    dims = len(sizes)
    flat = np.zeros((1,) * (2 * dims), np.int64)
    valid = np.ones((1,) * (2 * dims), bool)
    for axis, (n, windows) in enumerate(zip(sizes, spans, strict=True)):
        starts = np.array([start for start, _ in windows]).reshape(-1, 1)
        ends = np.array([end for _, end in windows]).reshape(-1, 1)
        at = starts + np.arange(int((ends - starts).max(initial=0)))
        shape = [1] * (2 * dims)
        shape[axis], shape[dims + axis] = at.shape
        valid = valid & ((at >= 0) & (at < np.minimum(ends, n))).reshape(shape)
        flat = flat * n + np.clip(at, 0, max(n - 1, 0)).reshape(shape)
    places = product(flat.shape[:dims])
    return flat.reshape(places, -1), np.broadcast_to(valid, flat.shape).reshape(places, -1)


class Pooling:
    """The image with channels first and its windows, for forward and gradient kernels.

    `attrs`: those of a pooling operator; missing ones have the defaults of `pool2d`.
    """

    def __init__(self, xp: Any, X: Any, attrs: Mapping[str, Any]) -> None:
        self.xp, self.attrs = xp, attrs
        self.last = channels_last(attrs.get("data_format", "NCHW"))
        self.x = xp.moveaxis(X, -1, 1) if self.last else X
        self.lead = self.x.shape[:2]
        self.sizes = self.x.shape[2:]
        spans = window_spans(
            self.sizes,
            attrs["ksize"],
            attrs["strides"],
            attrs["paddings"],
            attrs.get("padding_algorithm", "EXPLICIT"),
            attrs["global_pooling"],
            attrs["adaptive"],
            attrs.get("ceil_mode", False),
        )
        self.out = tuple(len(windows) for windows in spans)
        self.flat, self.valid = constant(xp, _windows, tuple(self.sizes), tuple(map(tuple, spans)))

    def gathered(self, fill: float) -> Any:
        """[N, C, places, elements] with `fill` outside of the image."""
        rows = self.x.reshape(*self.lead, product(self.sizes))[:, :, self.flat]
        return self.xp.where(self.valid, rows, rows.dtype.type(fill))

    def divisors(self) -> Any:
        """The divisor of the sum over each output element's window."""
        inside = self.valid.sum(axis=1)
        if not any(self.attrs[name] for name in ("exclusive", "adaptive", "global_pooling")):
            inside = self.xp.full_like(inside, product(tuple(self.attrs["ksize"])))
        return self.xp.maximum(inside, 1).astype(self.x.dtype)

    def placed(self, values: Any, sizes: Shape | None = None) -> Any:
        """[N, C, L] as an image in the layout the operator was given."""
        image = values.reshape(*self.lead, *(self.out if sizes is None else sizes))
        return self.xp.ascontiguousarray(self.xp.moveaxis(image, 1, -1) if self.last else image)

    def rows(self, image: Any) -> Any:
        """The inverse of `placed`: [N, C, places]."""
        image = self.xp.moveaxis(image, -1, 1) if self.last else image
        return image.reshape(*self.lead, product(image.shape[2:]))

    def take_flat(self, image: Any, places: Any) -> Any:
        """The elements of `image` at the flat indices `places` [N, C, places]."""
        return self.xp.take_along_axis(self.rows(image), places, axis=2)

    def scattered(self, targets: Any, values: Any) -> Any:
        """Add `values` [N, C, ...] at `targets` (broadcastable flat indices) of an empty image."""
        planes = self.lead[0] * self.lead[1]
        size = product(self.sizes)
        total = self.xp.zeros((planes, size), values.dtype)
        plane = self.xp.arange(planes).reshape(*self.lead, *[1] * (values.ndim - 2))
        self.xp.add.at(total, (plane, targets), values)
        return self.placed(total, self.sizes)


def _pool(xp: Any, X: Any, pooling_type: str, **attrs: Any) -> Any:
    pooling = Pooling(xp, X, attrs)
    if pooling_type == "max":
        return pooling.placed(highest(pooling))
    return pooling.placed(pooling.gathered(0).sum(axis=3) / pooling.divisors())


def _pool_grad(xp: Any, X: Any, Out_grad: Any, pooling_type: str, **attrs: Any) -> Any:
    pooling = Pooling(xp, X, attrs)
    dout = pooling.rows(Out_grad)
    if pooling_type == "max":
        nothing = ~(pooling.gathered(-np.inf).max(axis=3) > -np.inf)  # padding alone, or not a number
        dout = xp.where(nothing, xp.zeros((), dtype=dout.dtype), dout)
        return pooling.scattered(winners(pooling), dout)
    share = dout / pooling.divisors()
    spread = xp.where(pooling.valid, share[..., None], xp.zeros((), dtype=share.dtype))
    return pooling.scattered(pooling.flat, spread)


def _pool_double_grad(xp: Any, X: Any, DDX: Any, pooling_type: str, **attrs: Any) -> Any:
    """Pool DDX with the maxima of X, or average it."""
    if pooling_type != "max":
        return _pool(xp, DDX, pooling_type, **attrs)
    pooling = Pooling(xp, X, attrs)
    return pooling.placed(pooling.take_flat(DDX, winners(pooling)))


def highest(pooling: Pooling) -> Any:
    """Each window's maximum, as in Fluid at least the lowest finite number: [N, C, places]."""
    return pooling.xp.maximum(pooling.gathered(-np.inf).max(axis=3), np.finfo(pooling.x.dtype).min)


def winners(pooling: Pooling) -> Any:
    """The flat index of each window's first maximum: [N, C, places]."""
    xp = pooling.xp
    best = pooling.gathered(-np.inf).argmax(axis=3)
    return pooling.flat[xp.arange(pooling.flat.shape[0]), best]


def _attr(op: OpView, name: str, default: Any) -> Any:
    return op.attr(name) if name in op.definition.attrs else default


def _out_sizes(op: OpView, sizes: Shape) -> Shape:
    """The spatial sizes of the output, -1 where that of the input is unknown."""
    ksize = op.attr("ksize")
    if op.attr("adaptive"):
        return tuple(ksize)
    if op.attr("global_pooling"):
        return (1,) * len(sizes)
    if len(ksize) != len(sizes):
        raise op.fail(f"ksize must have {len(sizes)} elements, got {list(ksize)}")
    if min(op.attr("strides")) <= 0:
        raise op.fail(f"strides must be positive, got {list(op.attr('strides'))}")
    try:
        counts = window_counts(
            [max(n, 0) for n in sizes],
            ksize,
            op.attr("strides"),
            op.attr("paddings"),
            _attr(op, "padding_algorithm", "EXPLICIT"),
            _attr(op, "ceil_mode", False),
        )
    except ValueError as error:
        raise op.fail(str(error)) from None
    out = tuple(-1 if n < 0 else count for n, count in zip(sizes, counts, strict=True))
    if 0 in out:
        raise op.fail(f"images of size {list(sizes)} are smaller than the window {list(ksize)}")
    return out


def infer_pool(op: OpView) -> None:
    """The shape of the output."""
    shape = op.shape("X")
    kinds = ("max", "avg")
    kind = _attr(op, "pooling_type", "max")
    if kind not in kinds:
        raise op.fail(f"pooling_type must be 'max' or 'avg', got {kind!r}")
    if len(shape) != len(op.attr("strides")) + 2:
        raise op.fail(f"X must have {len(op.attr('strides')) + 2} dimensions, got {len(shape)}")
    if channels_last(_attr(op, "data_format", "NCHW")):
        out = (shape[0], *_out_sizes(op, shape[1:-1]), shape[-1])
    else:
        out = (*shape[:2], *_out_sizes(op, shape[2:]))
    op.set("Out", out, op.dtype("X"))
    if "Mask" in op.definition.slots:
        op.set("Mask", out, VarType.INT32)


def _call(op: OpView, part: str, slots: Sequence[str]) -> Call | None:
    """The call of pooling, or of its gradient, on the variables in `slots`; None if they are no floats or doubles."""
    shape, dims, last = op.shape("X"), len(op.attr("strides")), channels_last(op.attr("data_format"))
    sizes, bins = shape[1:-1] if last else shape[2:], op.attr("adaptive")
    if bins or op.attr("global_pooling"):
        ksize, strides, pads = (1,) * dims if bins else sizes, (1,) * dims, [(0, 0)] * dims
    else:
        ksize, strides = op.attr("ksize"), op.attr("strides")
        pads = resolve_pads(op.attr("padding_algorithm"), op.attr("paddings"), sizes, ksize, strides)
    out, share = _out_sizes(op, sizes), 2 if bins else int(op.attr("exclusive") or op.attr("global_pooling"))
    before = [pad for pad, _ in pads]
    if dims == 2 and not (last or bins):
        kernel, ints = "pool2d", [*shape, *ksize, *strides, *before, *out, share]
    else:
        images = [shape[0], *sizes, shape[-1]] if last else [shape[0] * shape[1], *sizes, 1]
        flat, one = [1] * (3 - dims), [0] * (3 - dims)
        kernel, ints = "pool3d", [images[0], *flat, *images[1:], *flat, *ksize, *flat, *strides, *one]
        ints += [*before, *flat, *out, share]
    return typed_call(op, f"{kernel}_{op.attr('pooling_type')}{part}", slots, (), ints)


def _native_grad(op: OpView) -> Call | None:
    if not op.has(DX):
        return None
    return _call(op, "_grad", (*(("X", "Out") if op.attr("pooling_type") == "max" else ()), DOUT, DX))


def _register_pool(op_type: str, dims: int) -> None:
    attrs = {
        "pooling_type": "max",
        "ksize": [1] * dims,
        "global_pooling": False,
        "strides": [1] * dims,
        "paddings": [0] * dims,
        "exclusive": True,
        "adaptive": False,
        "ceil_mode": False,
        "data_format": "NCHW" if dims == 2 else "NCDHW",
        "is_test": False,
        "padding_algorithm": "EXPLICIT",
        "use_cudnn": False,
    }

    register_pair(
        op_type,
        ("X",),
        _pool,
        _pool_grad,
        infer_pool,
        "The maximum or the mean of each window of an image; adaptive: of bins, as many as ksize says.",
        attrs=attrs,
        keep_out=("Out",),
        second=(_pool_double_grad, ()),
        native=(lambda op: _call(op, "", ("X", "Out")), _native_grad),
        cuda=("windows.pool", "windows.pool_gradient"),
    )


_register_pool("pool2d", 2)
_register_pool("pool3d", 3)


def _pool_with_index(xp: Any, X: Any, **attrs: Any) -> Any:
    pooling = Pooling(xp, X, attrs)
    return pooling.placed(highest(pooling)), pooling.placed(winners(pooling).astype("int32"))


def _pool_with_index_grad(xp: Any, X: Any, Mask: Any, Out_grad: Any, **attrs: Any) -> Any:
    pooling = Pooling(xp, X, attrs)
    return pooling.scattered(pooling.rows(Mask).astype("int64"), pooling.rows(Out_grad))


def _pool_with_index_double_grad(xp: Any, X: Any, Mask: Any, DDX: Any, **attrs: Any) -> Any:
    pooling = Pooling(xp, X, attrs)
    return pooling.placed(pooling.take_flat(DDX, pooling.rows(Mask).astype("int64")))


def _register_indexed(op_type: str, dims: int) -> None:
    attrs = {
        "ksize": [1] * dims,
        "global_pooling": False,
        "strides": [1] * dims,
        "paddings": [0] * dims,
        "adaptive": False,
        "pooling_type": "max",
    }
    register_pair(
        op_type,
        ("X",),
        _pool_with_index,
        _pool_with_index_grad,
        infer_pool,
        "Max pooling that also returns the index of each maximum in the flattened image (Mask, int32).",
        outputs=("Out", "Mask"),
        attrs=attrs,
        keep_out=("Mask",),
        sequences=Sequences(source=None),
        no_grad=("Mask",),
        second=(_pool_with_index_double_grad, ()),
        cuda=("windows.pool_with_index", "windows.pool_with_index_gradient"),
    )


_register_indexed("max_pool2d_with_index", 2)
_register_indexed("max_pool3d_with_index", 3)


def _sizes(shape: Any, ksize: list[int], strides: list[int], paddings: list[int]) -> list[int]:
    return [
        (n - 1) * stride - 2 * padding + k if n >= 0 else -1
        for n, k, stride, padding in zip(shape[2:], ksize, strides, paddings, strict=True)
    ]


def _flat(x: Any) -> Any:
    return x.reshape(*x.shape[:2], -1)


def _unpool(xp: Any, X: Any, Indices: Any, ksize: list[int], strides: list[int], paddings: list[int]) -> Any:
    height, width = _sizes(X.shape, ksize, strides, paddings)
    require_in_range(xp, "unpool", "Indices", Indices, height * width, "places")
    made = xp.zeros((*X.shape[:2], height * width), X.dtype)
    n, c = xp.arange(X.shape[0])[:, None, None], xp.arange(X.shape[1])[None, :, None]
    made[n, c, _flat(Indices)] = _flat(X)
    return made.reshape(*X.shape[:2], height, width)


def _unpool_grad(xp: Any, Indices: Any, Out_grad: Any) -> Any:
    return xp.take_along_axis(_flat(Out_grad), _flat(Indices), axis=2).reshape(Indices.shape)


def _infer(op: OpView) -> None:
    shape = op.shape("X")
    if len(shape) != 4:
        raise op.fail(f"X must be [batch, channels, height, width], got {list(shape)}")
    if op.attr("unpooling_type") != "max":
        raise op.fail(f"unpooling_type must be 'max', got {op.attr('unpooling_type')!r}")
    sizes = _sizes(shape, *(list(op.attr(name)) for name in ("ksize", "strides", "paddings")))
    op.set("Out", (*shape[:2], *sizes), op.dtype("X"))


register_pair(
    "unpool",
    ("X", "Indices"),
    _unpool,
    _unpool_grad,
    _infer,
    "Each element of X at the place that Indices names in its channel; zeros elsewhere.",
    attrs={"ksize": [2, 2], "strides": [1, 1], "paddings": [0, 0], "unpooling_type": "max"},
    keep=("X#", "Indices"),
    no_grad=("Indices",),
    sequences=Sequences(source=None),
)


def _levels(height: int, width: int, pyramid_height: int) -> list[dict[str, Any]]:
    """The attributes of each level's pooling."""
    result = []
    for level in range(pyramid_height):
        bins = 1 << level
        size = [-(-n // bins) for n in (height, width)]
        paddings = [(k * bins - n + 1) // 2 for k, n in zip(size, (height, width), strict=True)]
        result.append(
            {
                "ksize": size,
                "strides": size,
                "paddings": paddings,
                "global_pooling": False,
                "exclusive": True,
                "adaptive": False,
            }
        )
    return result


def _spp(xp: Any, X: Any, pyramid_height: int, pooling_type: str) -> Any:
    parts = [
        _pool(xp, X, pooling_type=pooling_type, **level).reshape(len(X), -1)
        for level in _levels(X.shape[2], X.shape[3], pyramid_height)
    ]
    return xp.concatenate(parts, axis=1)


def _spp_grad(xp: Any, X: Any, Out_grad: Any, pyramid_height: int, pooling_type: str) -> Any:
    total, begin = xp.zeros_like(X), 0
    for number, level in enumerate(_levels(X.shape[2], X.shape[3], pyramid_height)):
        bins = 1 << number
        end = begin + X.shape[1] * bins * bins
        part = Out_grad[:, begin:end].reshape(*X.shape[:2], bins, bins)
        total += _pool_grad(xp, X, part, pooling_type=pooling_type, **level)
        begin = end
    return total


def _spatial_pyramid_infer(op: OpView) -> None:
    shape, count = op.shape("X"), op.attr("pyramid_height")
    if len(shape) != 4:
        raise op.fail(f"X must be images [batch, channels, height, width], got shape {list(shape)}")
    if op.attr("pooling_type") not in ("max", "avg"):
        raise op.fail(f"pooling_type must be 'max' or 'avg', got {op.attr('pooling_type')!r}")
    for size in shape[2:]:
        for bins in (1 << level for level in range(count)):
            kernel = -(-size // bins)
            if size >= 0 and (kernel * bins - size + 1) // 2 >= kernel:
                raise op.fail(f"an image of shape {list(shape[2:])} is too small for {bins} x {bins} bins")
    op.set("Out", (shape[0], shape[1] * ((4**count - 1) // 3)), op.dtype("X"))


register_pair(
    "spp",
    ("X",),
    _spp,
    _spp_grad,
    _spatial_pyramid_infer,
    "The maxima or means of 1, 2 x 2, 4 x 4, ... bins of an image, side by side.",
    attrs={"pyramid_height": 1, "pooling_type": "max"},
    sequences=Sequences(source=None),
)
