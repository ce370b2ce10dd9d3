"""Cases of products, convolutions, pooling, normalisation and resizing."""

from __future__ import annotations

import numpy as np

from .cases import Case, Chooser, case, recipe


@recipe("mul")
def mul(c: Chooser, op: str) -> Case:
    dtype = c.real()
    left, inner, right = c.shape(1, 2), c.shape(1, 2), c.shape(1, 2)
    if c.one_in(15):
        inner = (*inner, 2)
    attrs = {"x_num_col_dims": len(left), "y_num_col_dims": len(inner)}
    other = (int(np.prod(inner)),) if c.one_in(3) else inner
    attrs["y_num_col_dims"] = len(other)
    return case(op, {"X": c.floats((*left, *inner), dtype), "Y": c.floats((*other, *right), dtype)}, attrs)


@recipe("matmul")
def matmul(c: Chooser, op: str) -> Case:
    dtype = c.real()
    m, k, n = c.dim(), c.dim(), c.dim()
    tx, ty = c.bool(), c.bool()
    lead = c.shape(0, 2)
    lead = tuple(min(size, 5) for size in lead)
    x = (*lead, k, m) if tx else (*lead, m, k)
    y = (*lead, n, k) if ty else (*lead, k, n)
    how = c.int(0, 9)
    if how == 0:
        y = y[len(lead) :]
    elif how == 1:
        x = x[len(lead) :]
    elif how == 2:
        x = (k,)
    elif how == 3:
        y = (k,)
    elif how == 4:
        x, y = (k,), (k,) if not c.one_in(3) else (n,)
    elif how == 5 and c.bool():
        y = (*y[:-1], y[-1] + 1)
    attrs = {"transpose_X": tx, "transpose_Y": ty, "alpha": c.pick([1.0, 1.0, 0.5, -2.0])}
    return case(op, {"X": c.floats(x, dtype), "Y": c.floats(y, dtype)}, attrs)


@recipe("bmm")
def bmm(c: Chooser, op: str) -> Case:
    dtype = c.real()
    b, m, k, n = (c.dim() for _ in range(4))
    return case(op, {"X": c.floats((b, m, k), dtype), "Y": c.floats((b, k, n), dtype)})


@recipe("dot")
def dot(c: Chooser, op: str) -> Case:
    shape = c.shape(1, 2)
    dtype = c.pick(["float32", "float64", "int32", "int64"])
    return case(op, {"X": c.values(shape, dtype, "plain"), "Y": c.values(shape, dtype, "plain")})


@recipe("kron")
def kron(c: Chooser, op: str) -> Case:
    dtype = c.real()
    x = c.floats([c.int(1, 4) for _ in range(c.int(1, 3))], dtype)
    return case(op, {"X": x, "Y": c.floats([c.int(1, 4) for _ in range(c.int(1, 3))], dtype)})


@recipe("cross")
def cross(c: Chooser, op: str) -> Case:
    shape = [c.int(1, 4) for _ in range(c.int(1, 3))]
    axis = c.int(0, len(shape) - 1)
    shape[axis] = 3
    dtype = c.real()
    return case(
        op,
        {"X": c.floats(shape, dtype), "Y": c.floats(shape, dtype)},
        {"dim": c.pick([9, axis, axis - len(shape)])},
    )


@recipe("dist")
def dist(c: Chooser, op: str) -> Case:
    dtype = c.real()
    x, y = c.floats(c.shape(1, 3, 1), dtype, "plain"), c.floats((1,), dtype, "plain")
    if c.bool():
        y = c.floats(x.shape, dtype, "plain")
    return case(op, {"X": x, "Y": y}, {"p": c.pick([2.0, 1.0, 0.0, 3.0, float("inf"), float("-inf")])})


@recipe("bilinear_tensor_product")
def bilinear(c: Chooser, op: str) -> Case:
    n, a, b, k = c.dim(1), c.int(1, 5), c.int(1, 5), c.int(1, 4)
    dtype = c.real()
    inputs = {
        "X": c.floats((n, a), dtype),
        "Y": c.floats((n, b), dtype),
        "Weight": c.floats((k, a, b), dtype),
    }
    return case(op, {**inputs, "Bias": c.floats((1, k), dtype) if c.bool() else None})


@recipe("cos_sim")
def cos_sim(c: Chooser, op: str) -> Case:
    n, d, dtype = c.dim(1), c.dim(1), "float32"
    return case(
        op, {"X": c.floats((n, d), dtype, "plain"), "Y": c.floats((c.pick([n, 1]), d), dtype, "plain")}
    )


@recipe("cholesky", "inverse")
def factorize(c: Chooser, op: str) -> Case:
    n, dtype = c.int(1, 5), c.real()
    a = c.floats((*c.shape(0, 2, 1)[:2], n, n), dtype, "plain")
    a = a @ np.swapaxes(a, -1, -2) + np.eye(n, dtype=dtype)
    if op == "inverse":
        return case(op, {"Input": a.astype(dtype)})
    return case(op, {"X": a.astype(dtype)}, {"upper": c.bool()})


def windows(c: Chooser, spatial: int, transposed: bool = False) -> tuple[dict[str, object], list[int]]:
    """Attributes of a convolution, and the size of its filters."""
    size = [c.pick([1, 2, 3, 3, 5]) for _ in range(spatial)]
    count = 2 * spatial if c.one_in(4) else spatial
    attrs = {
        "strides": [c.pick([1, 1, 2, 3]) for _ in range(spatial)],
        "dilations": [c.pick([1, 1, 1, 2]) for _ in range(spatial)],
        "paddings": [c.pick([0, 0, 1, 2]) for _ in range(count)],
        "padding_algorithm": c.pick(["EXPLICIT", "EXPLICIT", "EXPLICIT", "SAME", "VALID"]),
    }
    return attrs, size


def convolution(c: Chooser, op: str) -> Case:
    spatial = 3 if "3d" in op else 2
    attrs, size = windows(c, spatial)
    depthwise = op.startswith("depthwise")
    inside = c.pick([1, 2, 3, 4])
    groups = inside if depthwise else c.pick([1, 1, 1, 2, 4])
    if not depthwise:
        inside *= groups
    outside = groups * c.pick([1, 2, 3])
    image = [c.pick([1, 3, 4, 5, 7, 8]) for _ in range(spatial)]
    if c.one_in(25):
        image[0] = 0
    n = c.pick([1, 2, 3, 0]) if c.one_in(4) else 2
    last = c.one_in(4) and not depthwise
    attrs["data_format"] = ("NHWC" if last else "NCHW") if spatial == 2 else ("NDHWC" if last else "NCDHW")
    attrs["groups"] = groups
    kind = "any" if c.one_in(6) else "plain"
    dtype = c.real()
    shape = (n, *image, inside) if last else (n, inside, *image)
    inputs = {
        "Input": c.floats(shape, dtype, kind),
        "Filter": c.floats((outside, inside // groups, *size), dtype, kind),
    }
    return case(op, inputs, attrs)


recipe("conv2d", "conv3d", "depthwise_conv2d")(convolution)


@recipe("conv2d_transpose", "conv3d_transpose", "depthwise_conv2d_transpose")
def transposed(c: Chooser, op: str) -> Case:
    spatial = 3 if "3d" in op else 2
    attrs, size = windows(c, spatial)
    depthwise = op.startswith("depthwise")
    inside = c.pick([1, 2, 3, 4])
    groups = inside if depthwise else c.pick([1, 1, 1, 2])
    if not depthwise:
        inside *= groups
    image = [c.pick([1, 3, 4, 5]) for _ in range(spatial)]
    last = c.one_in(5) and not depthwise
    attrs["data_format"] = ("NHWC" if last else "NCHW") if spatial == 2 else ("NDHWC" if last else "NCDHW")
    attrs["groups"] = groups
    dtype = c.real()
    n = c.pick([1, 2])
    shape = (n, *image, inside) if last else (n, inside, *image)
    inputs = {
        "Input": c.floats(shape, dtype, "plain"),
        "Filter": c.floats((inside, c.pick([1, 1, 2, 3]), *size), dtype, "plain"),
    }
    return case(op, inputs, attrs)


@recipe("pool2d", "pool3d")
def pool(c: Chooser, op: str) -> Case:
    spatial = 3 if "3d" in op else 2
    attrs, size = windows(c, spatial)
    del attrs["dilations"]
    image = [c.pick([1, 3, 4, 5, 7]) for _ in range(spatial)]
    attrs["adaptive"] = c.one_in(5)
    if not c.one_in(12):
        size = [min(k, n) for k, n in zip(size, image, strict=True)]
        if attrs["padding_algorithm"] == "EXPLICIT" and not c.one_in(6):
            doubled = [k for k in size for _ in range(len(attrs["paddings"]) // spatial)]
            attrs["paddings"] = [min(p, k - 1) for p, k in zip(attrs["paddings"], doubled, strict=True)]
    last = c.one_in(4)
    attrs.update(
        ksize=size,
        pooling_type=c.pick(["max", "avg"]),
        global_pooling=c.one_in(6),
        exclusive=c.bool(),
        ceil_mode=c.bool(),
        data_format=("NHWC" if last else "NCHW") if spatial == 2 else ("NDHWC" if last else "NCDHW"),
    )
    n, channels = c.pick([1, 2, 0]) if c.one_in(9) else 2, c.pick([1, 3, 9])
    shape = (n, *image, channels) if last else (n, channels, *image)
    return case(op, {"X": c.floats(shape)}, attrs)


@recipe("max_pool2d_with_index", "max_pool3d_with_index")
def pool_index(c: Chooser, op: str) -> Case:
    spatial = 3 if "3d" in op else 2
    image = [c.pick([1, 3, 4, 5, 7]) for _ in range(spatial)]
    size = [c.int(1, n) for n in image]
    attrs = {
        "ksize": size,
        "strides": [c.int(1, 3) for _ in size],
        "paddings": [c.int(0, k - 1) if c.bool() else 0 for k in size],
        "global_pooling": c.one_in(6),
        "adaptive": c.one_in(5),
    }
    return case(op, {"X": c.floats((c.int(1, 2), c.int(1, 3), *image), None, "plain")}, attrs)


@recipe("unfold")
def unfold(c: Chooser, op: str) -> Case:
    attrs, size = windows(c, 2)
    attrs = {"strides": attrs["strides"], "dilations": attrs["dilations"], "kernel_sizes": size}
    attrs["paddings"] = [c.int(0, 2) for _ in range(4)]
    return case(op, {"X": c.floats((c.int(1, 2), c.int(1, 3), c.int(3, 8), c.int(3, 8)))}, attrs)


@recipe("batch_norm")
def batch_norm(c: Chooser, op: str) -> Case:
    dtype = c.real()
    x = c.floats(c.shape(2, 5, 1), dtype, "any" if c.one_in(6) else "plain")
    layout = c.pick(["NCHW", "NCHW", "NHWC"])
    n = x.shape[-1] if layout == "NHWC" else x.shape[1]
    inputs = {
        "X": x,
        "Scale": c.floats((n,), dtype, "plain"),
        "Bias": c.floats((n,), dtype, "plain"),
        "Mean": c.floats((n,), dtype, "plain"),
        "Variance": c.floats((n,), dtype, "positive"),
    }
    attrs = {
        "is_test": c.one_in(4),
        "use_global_stats": c.one_in(5),
        "momentum": c.pick([0.9, 0.5, 0.0, 1.0]),
        "epsilon": c.pick([1e-5, 1e-3]),
        "data_layout": layout,
    }
    return case(op, inputs, attrs)


@recipe("layer_norm")
def layer_norm(c: Chooser, op: str) -> Case:
    dtype = c.real()
    x = c.floats(c.shape(2, 4, 1), dtype, "any" if c.one_in(6) else "plain")
    axis = c.int(1, x.ndim - 1)
    n = int(np.prod(x.shape[axis:]))
    inputs = {
        "X": x,
        "Scale": c.floats((n,), dtype) if c.bool() else None,
        "Bias": c.floats((n,), dtype) if c.bool() else None,
    }
    return case(op, inputs, {"begin_norm_axis": axis, "epsilon": c.pick([1e-5, 1e-3])})


@recipe("group_norm")
def group_norm(c: Chooser, op: str) -> Case:
    dtype, groups = c.real(), c.int(1, 3)
    n = groups * c.int(1, 3)
    layout = c.pick(["NCHW", "NHWC"])
    image = (c.int(1, 4), c.int(1, 4))
    x = c.floats((c.dim(1), n, *image) if layout == "NCHW" else (c.dim(1), *image, n), dtype, "plain")
    inputs = {"X": x, "Scale": c.floats((n,), dtype, "plain"), "Bias": c.floats((n,), dtype, "plain")}
    return case(op, inputs, {"groups": groups, "epsilon": 1e-5, "data_layout": layout})


@recipe("instance_norm")
def instance_norm(c: Chooser, op: str) -> Case:
    dtype = c.real()
    x = c.floats(c.shape(2, 5, 1), dtype, "plain")
    scale, bias = (c.floats((x.shape[1],), dtype, "plain") for _ in range(2))
    return case(op, {"X": x, "Scale": scale, "Bias": bias}, {"epsilon": 1e-5})


@recipe("lrn")
def lrn(c: Chooser, op: str) -> Case:
    attrs = {
        "n": c.pick([1, 3, 5]),
        "k": 2.0,
        "alpha": 0.1,
        "beta": 0.75,
        "data_format": c.pick(["NCHW", "NHWC"]),
    }
    return case(
        op, {"X": c.floats((c.int(1, 2), c.int(1, 7), c.int(1, 4), c.int(1, 7)), "float32", "plain")}, attrs
    )


@recipe("spectral_norm")
def spectral_norm(c: Chooser, op: str) -> Case:
    dtype, dim = c.real(), c.int(0, 1)
    w = c.floats([c.int(1, 4) for _ in range(c.int(2, 4))], dtype, "plain")
    h = w.shape[dim]
    inputs = {
        "Weight": w,
        "U": c.floats((h,), dtype, "positive"),
        "V": c.floats((w.size // h,), dtype, "positive"),
    }
    return case(op, inputs, {"dim": dim, "power_iters": c.int(0, 3), "eps": 1e-12})


@recipe("bilinear_interp", "nearest_interp", "trilinear_interp", "linear_interp", "bicubic_interp")
def interpolate(c: Chooser, op: str) -> Case:
    spatial = {"trilinear_interp": 3, "linear_interp": 1}.get(op, 2)
    image = [c.int(1, 6) for _ in range(spatial)]
    last = c.one_in(4)
    attrs = {
        "interp_method": op.removesuffix("_interp"),
        "align_corners": c.bool(),
        "align_mode": c.int(0, 1),
        "data_layout": {1: ("NCW", "NWC"), 2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}[spatial][last],
    }
    out = [c.int(1, 9) for _ in image]
    names = (
        ("out_w",) if spatial == 1 else ("out_h", "out_w") if spatial == 2 else ("out_d", "out_h", "out_w")
    )
    if c.one_in(3):
        attrs["scale"] = c.pick([2.0, 0.5, 1.5, 3.0])
        attrs.update(dict.fromkeys(names, -1))
    else:
        attrs.update(zip(names, out, strict=True))
    n, channels = c.int(1, 2), c.int(1, 3)
    x = c.floats((n, *image, channels) if last else (n, channels, *image), None, "plain")
    inputs = {"X": x}
    if c.one_in(5):
        inputs["OutSize"] = np.array(out, "int32")
    return case(op, inputs, attrs)


@recipe("grid_sampler")
def grid_sampler(c: Chooser, op: str) -> Case:
    n, h, w, dtype = c.int(1, 2), c.int(1, 5), c.int(1, 5), c.real()
    grid = c.floats((n, h, w, 2), dtype, "plain")
    return case(op, {"X": c.floats((n, c.int(1, 3), h, w), dtype, "plain"), "Grid": grid})


@recipe("affine_grid")
def affine_grid(c: Chooser, op: str) -> Case:
    n = c.int(1, 3)
    shape = [n, c.int(1, 3), c.int(1, 5), c.int(1, 5)]
    return case(op, {"Theta": c.floats((n, 2, 3), None, "plain")}, {"output_shape": shape})


@recipe("gru_unit")
def gru_unit(c: Chooser, op: str) -> Case:
    n, d, dtype = c.dim(1), c.int(1, 5), c.real()
    inputs = {
        "Input": c.floats((n, 3 * d), dtype, "plain"),
        "HiddenPrev": c.floats((n, d), dtype, "plain"),
        "Weight": c.floats((d, 3 * d), dtype, "plain"),
        "Bias": c.floats((1, 3 * d), dtype, "plain") if c.bool() else None,
    }
    return case(
        op, inputs, {"activation": c.int(0, 3), "gate_activation": c.int(0, 3), "origin_mode": c.bool()}
    )


@recipe("lstm_unit")
def lstm_unit(c: Chooser, op: str) -> Case:
    n, d, dtype = c.dim(1), c.int(1, 5), c.real()
    return case(
        op,
        {"X": c.floats((n, 4 * d), dtype), "C_prev": c.floats((n, d), dtype)},
        {"forget_bias": c.pick([0.0, 1.0])},
    )


@recipe("dropout")
def dropout(c: Chooser, op: str) -> Case:
    attrs = {
        "dropout_prob": c.pick([0.5, 0.1, 0.0, 1.0]),
        "is_test": c.bool(),
        "fix_seed": True,
        "seed": c.int(1, 99),
        "dropout_implementation": c.pick(["downgrade_in_infer", "upscale_in_train"]),
    }
    return case(op, {"X": c.floats(c.shape())}, attrs, outputs={"Mask": 0} if attrs["is_test"] else {})


@recipe("lookup_table", "lookup_table_v2")
def embedding(c: Chooser, op: str) -> Case:
    height, width = c.dim(1), c.dim(1)
    off = 1 if c.one_in(12) else 0
    shape = c.shape(1, 2)
    ids = c.ints((*shape, 1) if op == "lookup_table" else shape, -off, height - 1 + off)
    padding = c.pick([-1, -1, c.int(0, height - 1)])
    return case(op, {"W": c.floats((height, width)), "Ids": ids}, {"padding_idx": padding})


@recipe("tree_conv")
def tree_conv(c: Chooser, op: str) -> Case:
    n, dtype = c.int(2, 5), c.real()
    edges = np.zeros((1, n, 2), "int32")
    for child in range(2, n + 1):
        edges[0, child - 2] = (c.int(1, child - 1), child)
    inputs = {
        "NodesVector": c.floats((1, n, 3), dtype, "plain"),
        "EdgeSet": edges,
        "Filter": c.floats((3, 3, c.int(1, 3), 2), dtype, "plain"),
    }
    return case(op, inputs, {"max_depth": c.int(1, 3)})
