"""Convolutions over two or three spatial dimensions, their transposes, second derivatives of both; `tree_conv`."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..._ext.forks import library_call
from ...backend import to_host
from ...backend.functions import matmul
from ...base import flags
from ...base.sizes import current
from ...base.windows import Geometry, channels_last, forward_geometry, transposed_geometry
from ..grad_pairs import Kernel, double_grad, or_zeros, register_double_grad, register_pair
from ..infer import product, require_same_dtype
from ..native import element
from ..registry import FIRST, Call, OperatorError, OpView, Sequences, Shape, grad_name


def _margins(g: Geometry) -> list[tuple[int, int]]:
    """For each axis how many elements the patches reach beyond an image, before and after it."""
    margins = []
    for axis, (before, _) in enumerate(g.pads):
        reach = g.dilations[axis] * (g.kernel[axis] - 1)
        last = (g.out[axis] - 1) * g.strides[axis] - before + max(reach, 0)
        margins.append((max(before - min(reach, 0), 0), max(last + 1 - g.image[axis], 0)))
    return margins


def _places(g: Geometry) -> list[tuple[slice, ...]]:
    """For each element of the kernel, the slices of an image with margins that it is multiplied with."""
    steps = []
    for axis, (low, _) in enumerate(_margins(g)):
        stride = g.strides[axis]
        starts = [low - g.pads[axis][0] + k * g.dilations[axis] for k in range(g.kernel[axis])]
        steps.append([slice(start, start + (g.out[axis] - 1) * stride + 1, stride) for start in starts])
    return list(itertools.product(*steps))


def gather_patches(xp: Any, x: Any, g: Geometry, groups: int) -> Any:
    """[N, C, S...] to [N, groups, C / groups * K, L]: for each of the L places of `g.out`, the patch around
    it.
    """
    n, c = x.shape[:2]
    if min(g.out, default=1) <= 0 or n == 0:
        return xp.zeros((n, groups, c // groups * product(g.kernel), product(g.out)), x.dtype)
    margins = _margins(g)
    if any(low or high for low, high in margins):
        x = xp.pad(x, [(0, 0), (0, 0), *margins])
    patches = xp.stack([x[(slice(None),) * 2 + place] for place in _places(g)], axis=2)
    return patches.reshape(n, groups, c // groups * product(g.kernel), product(g.out))


def scatter_patches(xp: Any, patches: Any, g: Geometry) -> Any:
    """The adjoint of `gather_patches`: add up patches [N, groups, C / groups * K, L] to images [N, C,
    S...].
    """
    n, groups, rows, _ = patches.shape
    k = product(g.kernel)
    c = groups * (rows // k)
    margins = _margins(g)
    padded = xp.zeros(
        (n, c, *(low + size + high for size, (low, high) in zip(g.image, margins, strict=True))),
        patches.dtype,
    )
    if n and min(g.out, default=1) > 0:
        patches = patches.reshape(n, c, k, *g.out)
        for index, place in enumerate(_places(g)):
            padded[(slice(None),) * 2 + place] += patches[:, :, index]
    inner = tuple(slice(low, low + size) for (low, _), size in zip(margins, g.image, strict=True))
    return padded[(slice(None),) * 2 + inner]


# Convolutions over two or three spatial dimensions, their transposes, and the gradients of both.
#
# The reference kernels gather patches (im2col) and multiply matrices. Filters are stored as Fluid stores them: [M, C
# / groups, K...], also where the images are channels-last; those of a transposed convolution as [C, M / groups,
# K...].

DINPUT, DFILTER, DOUTPUT = (grad_name(slot) for slot in ("Input", "Filter", "Output"))


def _grouped(array: Any, groups: int) -> Any:
    """[N, C, S...] to [N, groups, C / groups, L]."""
    return array.reshape(array.shape[0], groups, array.shape[1] // groups, product(array.shape[2:]))


def _first(xp: Any, x: Any, last: bool) -> Any:
    return xp.moveaxis(x, -1, 1) if last else x


def _as_given(xp: Any, x: Any, last: bool) -> Any:
    return xp.ascontiguousarray(xp.moveaxis(x, 1, -1) if last else x)


def convolve(xp: Any, Input: Any, Filter: Any, Bias: Any, **attrs: Any) -> Any:
    """The convolution of images with filters; the kernel of conv2d and conv3d."""
    last, groups = channels_last(attrs["data_format"]), attrs["groups"]
    x = _first(xp, Input, last)
    g = _windows(x.shape[2:], Filter.shape[2:], attrs)
    patches = gather_patches(xp, x, g, groups)
    weights = Filter.reshape(groups, Filter.shape[0] // groups, -1)
    out = matmul(xp, weights, patches).reshape(x.shape[0], Filter.shape[0], *g.out)
    if Bias is not None:
        out = out + Bias.reshape(1, -1, *[1] * len(g.out))
    return _as_given(xp, out, last)


def convolve_grad(xp: Any, Input: Any, Filter: Any, Bias: Any, Output_grad: Any, **attrs: Any) -> Any:
    """The gradients of `convolve` for images, filters and bias."""
    last, groups = channels_last(attrs["data_format"]), attrs["groups"]
    x, dout = _first(xp, Input, last), _first(xp, Output_grad, last)
    g = _windows(x.shape[2:], Filter.shape[2:], attrs)
    dout = _grouped(dout, groups)
    weights = Filter.reshape(groups, Filter.shape[0] // groups, -1)
    dx = scatter_patches(xp, matmul(xp, weights.swapaxes(1, 2), dout), g)
    patches = gather_patches(xp, x, g, groups)
    dfilter = matmul(xp, dout, patches.swapaxes(2, 3)).sum(axis=0).reshape(Filter.shape)
    dbias = None if Bias is None else dout.sum(axis=(0, 3)).reshape(Bias.shape)
    return _as_given(xp, dx, last), dfilter, dbias


def convolve_transposed(xp: Any, Input: Any, Filter: Any, Bias: Any, **attrs: Any) -> Any:
    """The transposed convolution of images with filters. Channels beyond a multiple of groups do nothing."""
    last, groups = channels_last(attrs["data_format"]), attrs["groups"]
    used = Filter.shape[0] // groups * groups
    x = _first(xp, Input, last)[:, :used]
    g = _windows(x.shape[2:], Filter.shape[2:], attrs)
    weights = Filter[:used].reshape(groups, used // groups, -1)
    out = scatter_patches(xp, matmul(xp, weights.swapaxes(1, 2), _grouped(x, groups)), g)
    if Bias is not None:
        out = out + Bias.reshape(1, -1, *[1] * len(g.image))
    return _as_given(xp, out, last)


def convolve_transposed_grad(
    xp: Any, Input: Any, Filter: Any, Bias: Any, Output_grad: Any, **attrs: Any
) -> Any:
    """The gradients of `convolve_transposed` for images, filters and bias."""
    last, groups = channels_last(attrs["data_format"]), attrs["groups"]
    x, dout = _first(xp, Input, last), _first(xp, Output_grad, last)
    g = _windows(x.shape[2:], Filter.shape[2:], attrs)
    patches = gather_patches(xp, dout, g, groups)
    used = Filter.shape[0] // groups * groups
    weights = Filter[:used].reshape(groups, used // groups, -1)
    dx, dfilter = xp.zeros(x.shape, x.dtype), xp.zeros(Filter.shape, Filter.dtype)
    dx[:, :used] = matmul(xp, weights, patches).reshape(x.shape[0], used, *x.shape[2:])
    products = matmul(xp, _grouped(x[:, :used], groups), patches.swapaxes(2, 3))
    dfilter[:used] = products.sum(axis=0).reshape(Filter[:used].shape)
    dbias = None if Bias is None else dout.sum(axis=(0, *range(2, dout.ndim))).reshape(Bias.shape)
    return _as_given(xp, dx, last), dfilter, dbias


def _windows(sizes: Shape, kernel: Shape, attrs: Mapping[str, Any]) -> Geometry:
    """The geometry of a convolution of images of `sizes`, or of a transposed one, by its attributes."""
    given = {name: attrs[name] for name in ("strides", "paddings", "dilations")}
    given["algorithm"] = attrs["padding_algorithm"]
    if "output_size" in attrs:
        return transposed_geometry(sizes, kernel, output_size=attrs["output_size"], **given)
    return forward_geometry(sizes, kernel, **given)


def _spatial(op: OpView, shape: Shape) -> tuple[int, Shape]:
    """Channels and spatial sizes of an image's shape."""
    if channels_last(op.attr("data_format")):
        return shape[-1], shape[1:-1]
    return shape[1], shape[2:]


def _layout(op: OpView, batch: int, channels: int, sizes: Shape) -> Shape:
    last = channels_last(op.attr("data_format"))
    return (batch, *sizes, channels) if last else (batch, channels, *sizes)


def _geometry(op: OpView, sizes: Shape, kernel: Shape) -> Geometry:
    strides = op.attr("strides")
    if min(strides) <= 0:
        raise op.fail(f"strides must be positive, got {list(strides)}")
    try:
        return _windows(sizes, kernel, {name: op.attr(name) for name in op.definition.attrs})
    except ValueError as error:
        raise op.fail(str(error)) from None


def _is_empty(sizes: Shape, result: Shape) -> bool:
    """Whether a result of images of `sizes` has no element along an axis; -1 where a size is unknown."""
    return any(n < 1 and (size >= 0 or n != -1) for size, n in zip(sizes, result, strict=True))


def _infer(op: OpView) -> None:
    shape, weights, groups = op.shape("Input"), op.shape("Filter"), op.attr("groups")
    if len(shape) != len(weights):
        raise op.fail(f"Input must have as many dimensions as Filter ({len(weights)}), got {len(shape)}")
    channels, sizes = _spatial(op, shape)
    if channels >= 0 and channels != weights[1] * groups:
        raise op.fail(
            f"Input must have {weights[1]} * groups = {weights[1] * groups} channels for this Filter, got "
            f"{channels}"
        )
    if weights[0] % groups:
        raise op.fail(f"the number of filters must be a multiple of groups = {groups}, got {weights[0]}")
    out = _geometry(op, sizes, weights[2:]).out
    if _is_empty(sizes, out):
        raise op.fail(
            f"images of size {list(sizes)} are smaller than the filter: the output would be {list(out)}"
        )
    op.set("Output", _layout(op, shape[0], weights[0], out), op.dtype("Input"))


def _infer_transposed(op: OpView) -> None:
    shape, weights, groups = op.shape("Input"), op.shape("Filter"), op.attr("groups")
    if len(shape) != len(weights):
        raise op.fail(f"Input must have as many dimensions as Filter ({len(weights)}), got {len(shape)}")
    channels, sizes = _spatial(op, shape)
    if channels >= 0 and channels != weights[0]:
        raise op.fail(f"Input must have {weights[0]} channels for this Filter, got {channels}")
    image = _geometry(op, sizes, weights[2:]).image
    if _is_empty(sizes, image):
        raise op.fail(f"nothing is left of images of size {list(sizes)}: the output would be {list(image)}")
    op.set("Output", _layout(op, shape[0], weights[1] * groups, image), op.dtype("Input"))


def _sizes(op: OpView, transposed: bool) -> list[int] | None:
    """The integers every convolution kernel takes; None if there is no kernel for the case.

    A transposed convolution is the gradient of one whose images are its outputs.
    """
    weights, groups = op.shape("Filter"), op.attr("groups")
    if element(op, "Input", "Filter") != "f32" or op.has("Bias") or weights[0] % groups:
        return None
    channels, sizes = _spatial(op, op.shape("Input"))
    g = _geometry(op, sizes, weights[2:])
    pads = [side for pair in g.pads for side in pair]
    if min(pads) < 0 or min(g.dilations) < 1:
        return None
    if transposed:
        channels, sizes = weights[1] * groups, g.image
    batch = op.shape("Input")[0]
    return [batch, channels, *sizes, weights[0], *g.kernel, *g.strides, *pads, *g.dilations, groups]


def _call(op: OpView, part: str, operands: Sequence[str | None], sizes: list[int]) -> Call:
    """The call of a convolution or one of its gradients (`part`), by oneDNN or, of two dimensions with channels first,
    by loops of our own on images as they lie.

    oneDNN computes channels in blocks, for which images are put into another order and back. That takes longer where
    channels do not fill blocks, and for windows of one element. It depends on the filters alone what is taken, so that
    one plan serves all images, unless FLUIDLITE_MEASURE has it tried.
    """
    last = channels_last(op.attr("data_format"))
    kind = f"conv{len(op.attr('strides'))}d{'_last' if last else ''}"
    if kind == "conv2d" and _as_they_lie(part, sizes):
        return Call(f"conv2d_plain{part}.f32", operands, sizes[:-1])
    return Call(f"{kind}{part}.f32", operands, sizes)


def _as_they_lie(part: str, sizes: list[int]) -> bool:
    """Whether loops of our own compute this part of a conv2d."""
    from ..._ext import kernels  # brings SciPy, which importing the package alone should not

    channels, filters, height, width, groups = sizes[1], *sizes[4:7], sizes[-1]
    single = height == width == 1
    if part == "":
        plain = single or filters % _BLOCK != 0
    elif single and kernels.used() != "baseline":
        plain = part == "_grad_filter" or filters < _MANY
    elif part == "_grad_input":
        few = channels < 2 * _BLOCK
        plain = channels % _BLOCK != 0 and (few or (filters % _BLOCK != 0 and not any(sizes[9:13])))
    else:
        few = channels < 3 and kernels.used() != "avx512"
        plain = not single and channels % _BLOCK != 0 and (channels > 3 or few)
    both = groups == 1 and kernels.available(f"conv2d{part}.f32")
    if both and flags.measures_convolutions():
        from . import measured  # rare, and needs modules of its own

        plain = measured.is_plain(part, [current(n) for n in sizes], plain)
    return groups == 1 and (plain or not both)


_BLOCK, _MANY = 8, 1024
"""Channels that blocks of any instruction set of oneDNN have at least, and from which on it takes less time for the
gradients of images by windows of one element.
"""


def _filtered(op: OpView, forward: bool, source: str, target: str, sizes: list[int]) -> Call:
    """The call that takes images through the filters to outputs, or, if not `forward`, outputs back to images."""
    source, weights, target = op.name(source), op.name("Filter"), op.name(target)
    if forward:
        return _call(op, "", [source, weights, None, target], sizes)
    return _call(op, "_grad_input", [weights, source, target], sizes)


def _native(op: OpView, transposed: bool) -> Call | None:
    sizes = _sizes(op, transposed)
    return None if sizes is None else _filtered(op, not transposed, "Input", "Output", sizes)


def _native_grad(op: OpView, transposed: bool) -> list[Call] | None:
    sizes = _sizes(op, transposed)
    if sizes is None:
        return None
    calls = []
    if op.has(DINPUT):
        calls.append(_filtered(op, transposed, DOUTPUT, DINPUT, sizes))
    if op.has(DFILTER):
        images, outputs = (DOUTPUT, "Input") if transposed else ("Input", DOUTPUT)
        operands = [op.name(images), op.name(outputs), op.name(DFILTER)]
        calls.append(_call(op, "_grad_filter", operands, sizes))
    return calls


def convolution_attrs(dims: int, **extra: Any) -> dict[str, Any]:
    """The attributes of convolutions over `dims` spatial dimensions, with their defaults."""
    return {
        "strides": [1] * dims,
        "paddings": [0] * dims,
        "padding_algorithm": "EXPLICIT",
        "groups": 1,
        "dilations": [1] * dims,
        "data_format": "NCHW" if dims == 2 else "NCDHW",
        "use_cudnn": False,
        **extra,
    }


def _register(op_type: str, dims: int, doc: str, transposed: bool = False) -> None:
    attrs = convolution_attrs(dims, output_size=[]) if transposed else convolution_attrs(dims, is_test=False)
    what = "spread" if transposed else "correlate"
    register_pair(
        op_type,
        ("Input", "Filter", "Bias?"),
        convolve_transposed if transposed else convolve,
        convolve_transposed_grad if transposed else convolve_grad,
        _infer_transposed if transposed else _infer,
        doc,
        outputs=("Output",),
        attrs=attrs,
        sequences=Sequences(source=None if transposed else FIRST),
        grad_grad=double_grad("Output", ("Input", "Filter")),
        native=(partial(_native, transposed=transposed), partial(_native_grad, transposed=transposed)),
        cuda=(f"windows.forward:{what}", f"windows.gradient:{what}"),
    )


_register(
    "conv2d", 2, "Cross-correlates images with filters: strides, padding, dilation and groups as in Fluid."
)
_register("depthwise_conv2d", 2, "A conv2d in which each channel has filters of its own (groups = channels).")
_register("conv3d", 3, "Cross-correlates volumes with filters.")
_register(
    "conv2d_transpose", 2, "The adjoint of conv2d: each input element adds its filter to the output.", True
)
_register("depthwise_conv2d_transpose", 2, "A conv2d_transpose with groups = channels.", True)
_register("conv3d_transpose", 3, "The adjoint of conv3d.", True)


def _second(forward: Kernel, back: Kernel) -> Kernel:
    """The kernel of the gradients for images, filters and the gradient of the output.

    Convolutions are linear in images and in filters, so `forward` and `back` compute them with one of the two replaced
    by the gradient of its gradient.
    """

    def kernel(
        xp: Any, Input: Any, Filter: Any, DOutput: Any, DDInput: Any, DDFilter: Any, DDBias: Any, **attrs: Any
    ) -> Any:
        some, others = or_zeros(xp, DDInput, Input), or_zeros(xp, DDFilter, Filter)
        for_images, _, _ = back(xp, Input, others, None, DOutput, **attrs)
        _, for_filters, _ = back(xp, some, Filter, None, DOutput, **attrs)
        for_dout = forward(xp, some, Filter, DDBias, **attrs) + forward(xp, Input, others, None, **attrs)
        return for_images, for_filters, for_dout

    return kernel


_KEPT, _WANTED = ("Input", "Filter", "Bias?"), ("Input", "Filter")

for _type, _dims in (("conv2d", 2), ("depthwise_conv2d", 2), ("conv3d", 3)):
    for _suffix, _kernels, _attrs, _what in (
        ("", (convolve, convolve_grad), convolution_attrs(_dims), "correlate"),
        (
            "_transpose",
            (convolve_transposed, convolve_transposed_grad),
            convolution_attrs(_dims, output_size=[]),
            "spread",
        ),
    ):
        register_double_grad(
            _type + _suffix,
            _KEPT,
            "Output",
            _WANTED,
            _second(*_kernels),
            _attrs,
            (*_WANTED, "Bias"),
            f"windows.double_grad:{_what}",
        )


def _children(edges: Any, nodes: int) -> list[list[int]]:
    """The children of each node (from 1 on); edges end at the first row with a 0."""
    result: list[list[int]] = [[] for _ in range(nodes + 1)]
    for parent, child in edges.tolist():
        if parent == 0 or child == 0:
            break
        if not (0 < parent <= nodes and 0 < child <= nodes):
            raise OperatorError(
                f"operator tree_conv: EdgeSet must name nodes from 1 to {nodes}, got an edge {parent}, {child}"
            )
        result[parent].append(child)
    return result


def _patches(edges: Any, nodes: int, depth: int) -> Any:
    """[nodes, nodes, 3]: how much each node counts at the left, right and top of the patch around each root."""
    children = _children(edges, nodes)
    there = 1 + sum(len(below) for below in children)
    shares = np.zeros((nodes, nodes, 3))
    for root in range(1, min(there, nodes) + 1):
        waiting = [(root, 0, 1, 1)]
        while waiting:
            node, level, place, siblings = waiting.pop()
            top = (depth - level) / depth
            left = (1 - top) * (0.5 if siblings == 1 else (place - 1) / (siblings - 1))
            shares[root - 1, node - 1] += (left, (1 - top) * (1 - left), top)
            if level + 1 < depth:
                below = children[node]
                waiting += [(child, level + 1, k + 1, len(below)) for k, child in enumerate(below)]
    return shares


def _all_patches(xp: Any, NodesVector: Any, EdgeSet: Any, max_depth: int) -> Any:
    count = NodesVector.shape[1]
    edges = to_host(EdgeSet)
    shares = (
        np.stack([_patches(one, count, max_depth) for one in edges]) if len(edges) else np.zeros((0,) * 4)
    )
    return xp.asarray(shares, dtype=NodesVector.dtype)


def _tree_conv(xp: Any, NodesVector: Any, EdgeSet: Any, Filter: Any, max_depth: int) -> Any:
    shares = _all_patches(xp, NodesVector, EdgeSet, max_depth)
    return library_call(xp.einsum, "brnk,bnf,fkoc->broc", shares, NodesVector, Filter, optimize=True)


def _tree_conv_grad(
    xp: Any, NodesVector: Any, EdgeSet: Any, Filter: Any, Out_grad: Any, max_depth: int
) -> Any:
    shares = _all_patches(xp, NodesVector, EdgeSet, max_depth)
    # Fluid reads the filter as if its second axis were the last, and models are trained with that.
    misread = Filter.reshape(len(Filter), *Filter.shape[2:], 3)
    dnodes = library_call(xp.einsum, "brnk,broc,fock->bnf", shares, Out_grad, misread, optimize=True)
    return dnodes, library_call(
        xp.einsum, "brnk,bnf,broc->fkoc", shares, NodesVector, Out_grad, optimize=True
    )


def _infer_tree(op: OpView) -> None:
    nodes, edges, weights = op.shape("NodesVector"), op.shape("EdgeSet"), op.shape("Filter")
    if len(nodes) != 3 or len(edges) != 3 or edges[2] != 2:
        raise op.fail(
            f"NodesVector must be [batch, nodes, features] and EdgeSet [batch, edges, 2], "
            f"got {list(nodes)} and {list(edges)}"
        )
    if len(weights) != 4 or weights[1] != 3 or (weights[0] != nodes[2] and nodes[2] >= 0):
        raise op.fail(f"Filter must be [{nodes[2]}, 3, output_size, num_filters], got {list(weights)}")
    if op.attr("max_depth") < 1:
        raise op.fail(f"max_depth must be positive, got {op.attr('max_depth')}")
    op.set("Out", (nodes[0], nodes[1], *weights[2:]), require_same_dtype(op, "NodesVector", "Filter"))


register_pair(
    "tree_conv",
    ("NodesVector", "EdgeSet", "Filter"),
    _tree_conv,
    _tree_conv_grad,
    _infer_tree,
    "Filters over each node of a tree and its descendants above max_depth; nodes count from 1.",
    attrs={"max_depth": 2},
    no_grad=("EdgeSet",),
    sequences=Sequences(source=None),
)
