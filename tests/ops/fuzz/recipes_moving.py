"""Cases of operators that move, pick, join and reduce elements."""

from __future__ import annotations

import numpy as np

from .cases import Case, Chooser, case, recipe

ALL = ["float32", "float64", "int32", "int64", "bool", "uint8", "int8", "int16", "float16"]


def anything(c: Chooser, least: int = 1, most: int = 4, low: int = 0) -> np.ndarray:
    """An array of nearly any type."""
    dtype = c.pick(ALL) if c.one_in(6) else c.pick(ALL[:4])
    return c.values(c.shape(least, most, low), dtype)


def axis_of(c: Chooser, x: np.ndarray) -> int:
    """An axis of x, negative or not, now and then out of range."""
    off = 1 if c.one_in(15) else 0
    return c.int(-x.ndim - off, x.ndim - 1 + off)


def axes_of(c: Chooser, x: np.ndarray, least: int = 1) -> list[int]:
    """Some axes of x in any order, some counted from the end."""
    some = [int(k) for k in c.rng().permutation(x.ndim)][: c.int(least, max(least, x.ndim))]
    return [k - x.ndim if c.one_in(3) else k for k in some]


@recipe("reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod", "reduce_all", "reduce_any")
def reduce(c: Chooser, op: str) -> Case:
    if op.endswith(("all", "any")):
        x = c.values(c.shape(), "bool")
    else:
        x = c.values(c.shape(), c.pick(ALL[2:4]) if c.one_in(4) else c.real())
    attrs = {"dim": axes_of(c, x), "keep_dim": c.bool(), "reduce_all": c.one_in(4)}
    return case(op, {"X": x}, attrs)


@recipe("frobenius_norm")
def frobenius(c: Chooser, op: str) -> Case:
    x = c.floats(c.shape(1, 4, 1))
    return case(op, {"X": x}, {"dim": axes_of(c, x), "keep_dim": c.bool(), "reduce_all": c.one_in(3)})


@recipe("mean", "squared_l2_norm", "l1_norm")
def whole(c: Chooser, op: str) -> Case:
    return case(op, {"X": c.floats(c.shape())})


@recipe("p_norm")
def p_norm(c: Chooser, op: str) -> Case:
    x = c.floats(c.shape(1, 4, 1), kind="plain")
    attrs = {"porder": c.pick([2.0, 1.0, 3.0, 0.5]), "axis": c.int(-x.ndim, x.ndim - 1), "keepdim": c.bool()}
    return case(op, {"X": x}, attrs)


@recipe("norm")
def norm(c: Chooser, op: str) -> Case:
    x = c.floats(c.shape(1, 4, 1))
    return case(op, {"X": x}, {"axis": c.int(-x.ndim, x.ndim - 1), "epsilon": c.pick([1e-10, 1e-2])})


@recipe("arg_max", "arg_min")
def arg(c: Chooser, op: str) -> Case:
    x = c.values(c.shape(), c.pick(ALL[2:4]) if c.one_in(3) else c.real())
    return case(op, {"X": x}, {"axis": axis_of(c, x), "keepdims": c.one_in(5), "dtype": c.pick([-1, 2, 3])})


@recipe("argsort")
def argsort(c: Chooser, op: str) -> Case:
    x = c.values(c.shape(), c.pick(ALL[2:4]) if c.one_in(4) else c.real())
    return case(op, {"X": x}, {"axis": axis_of(c, x), "descending": c.bool()})


@recipe("top_k")
def top_k(c: Chooser, op: str) -> Case:
    shape = c.shape(1, 3, 1)
    # No ties: their order is that of a sort.
    x = (c.rng().permutation(int(np.prod(shape))).reshape(shape) - 5).astype(c.pick(ALL[:4]))
    k = c.int(1, x.shape[-1]) if not c.one_in(9) else c.int(0, x.shape[-1] + 2)
    if c.one_in(4):
        return case(op, {"X": x, "K": np.array([k], "int32")}, {"k": 1})
    return case(op, {"X": x}, {"k": k})


@recipe("transpose", "transpose2")
def transpose(c: Chooser, op: str) -> Case:
    x = anything(c, 1, 6)
    perm = [int(k) for k in c.rng().permutation(x.ndim)]
    return case(op, {"X": x}, {"axis": perm})


@recipe("reshape", "reshape2")
def reshape(c: Chooser, op: str) -> Case:
    x = anything(c)
    sizes = [int(n) for n in c.rng().permutation(x.shape)]
    if len(sizes) > 1 and c.bool():
        sizes = [sizes[0] * sizes[1], *sizes[2:]]
    if c.bool():
        sizes.insert(c.int(0, len(sizes)), 1)
    at = c.int(0, len(sizes) - 1)
    how = c.int(0, 5)
    if how == 0:
        sizes[at] = -1
    elif how == 1 and at < x.ndim and sizes[at] == x.shape[at]:
        sizes[at] = 0
    elif how == 2 and c.one_in(4):
        sizes[at] += 1
    inputs = {"X": x}
    if c.one_in(4):
        inputs["Shape"] = np.array(sizes, "int32")
    return case(op, inputs, {"shape": sizes})


@recipe("flatten2")
def flatten(c: Chooser, op: str) -> Case:
    x = anything(c)
    return case(op, {"X": x}, {"axis": c.int(0, x.ndim + c.one_in(12))})


@recipe("squeeze2")
def squeeze(c: Chooser, op: str) -> Case:
    x = anything(c, 1, 5)
    return case(op, {"X": x}, {"axes": axes_of(c, x, 0)})


@recipe("unsqueeze2")
def unsqueeze(c: Chooser, op: str) -> Case:
    x = anything(c)
    return case(op, {"X": x}, {"axes": [c.int(-x.ndim - 1, x.ndim) for _ in range(c.int(1, 3))]})


@recipe("concat")
def concat(c: Chooser, op: str) -> Case:
    first = anything(c)
    axis = axis_of(c, first)
    items = [first]
    for _ in range(c.int(0, 3)):
        shape = list(first.shape)
        if -first.ndim <= axis < first.ndim:
            shape[axis] = c.dim()
        if c.one_in(20):
            shape[c.int(0, len(shape) - 1)] += 1
        items.append(c.values(shape, str(first.dtype)))
    return case(op, {"X": items}, {"axis": axis})


@recipe("split")
def split(c: Chooser, op: str) -> Case:
    x = anything(c)
    axis = axis_of(c, x)
    size = x.shape[axis] if -x.ndim <= axis < x.ndim else 4
    attrs: dict[str, object] = {"axis": axis}
    if c.bool():
        count = c.int(1, 4)
        attrs["num"] = count
    else:
        cuts = sorted(c.int(0, size) for _ in range(c.int(0, 2)))
        sections = [int(n) for n in np.diff([0, *cuts, size])]
        if c.one_in(3):
            sections[c.int(0, len(sections) - 1)] = -1
        attrs["sections"], count = sections, len(sections)
    return case(op, {"X": x}, attrs, outputs={"Out": count})


@recipe("stack")
def stack(c: Chooser, op: str) -> Case:
    first = anything(c, 1, 3)
    items = [first, *(c.values(first.shape, str(first.dtype)) for _ in range(c.int(0, 3)))]
    return case(op, {"X": items}, {"axis": c.int(-first.ndim - 1, first.ndim)})


@recipe("unstack")
def unstack(c: Chooser, op: str) -> Case:
    x = anything(c, 2, 4, 1)
    axis = c.int(-x.ndim, x.ndim - 1)
    return case(op, {"X": x}, {"axis": axis, "num": x.shape[axis]}, outputs={"Y": x.shape[axis]})


@recipe("unbind")
def unbind(c: Chooser, op: str) -> Case:
    x = anything(c, 2, 4, 1)
    axis = c.int(-x.ndim, x.ndim - 1)
    return case(op, {"X": x}, {"axis": axis}, outputs={"Out": x.shape[axis]})


def bounds(c: Chooser, x: np.ndarray) -> dict[str, list[int]]:
    axes = sorted(k % x.ndim for k in axes_of(c, x))
    starts, ends = [], []
    for k in axes:
        n = x.shape[k]
        starts.append(c.int(-n - 2, n + 1))
        ends.append(c.int(-n - 2, n + 3) if c.bool() else c.pick([n, 2**31 - 1, 10000]))
    return {"axes": axes, "starts": starts, "ends": ends}


@recipe("slice")
def slices(c: Chooser, op: str) -> Case:
    x = anything(c)
    attrs = bounds(c, x)
    attrs["infer_flags"] = [1] * len(attrs["axes"])
    attrs["decrease_axis"] = []
    if c.one_in(3):
        for at, k in enumerate(attrs["axes"]):
            if c.bool():
                n = max(1, x.shape[k])
                start = c.int(-n, n - 1)
                attrs["starts"][at] = start
                attrs["ends"][at] = start + 1 if start != -1 else 2**31 - 1
                attrs["decrease_axis"].append(k)
    return case(op, {"Input": x}, attrs)


@recipe("strided_slice")
def strided(c: Chooser, op: str) -> Case:
    x = anything(c)
    attrs = bounds(c, x)
    attrs["infer_flags"] = [1] * len(attrs["axes"])
    attrs["strides"] = [c.pick([1, 1, 2, 3, -1, -2]) for _ in attrs["axes"]]
    return case(op, {"Input": x}, attrs)


@recipe("expand")
def expand(c: Chooser, op: str) -> Case:
    x = anything(c, 1, 4)
    return case(op, {"X": x}, {"expand_times": [c.pick([1, 1, 2, 3]) for _ in x.shape]})


@recipe("expand_as")
def expand_as(c: Chooser, op: str) -> Case:
    x = anything(c, 1, 4, 1)
    target = c.values([n * c.pick([1, 2, 3]) for n in x.shape], str(x.dtype))
    return case(op, {"X": x, "target_tensor": target})


@recipe("flip")
def flip(c: Chooser, op: str) -> Case:
    x = anything(c)
    return case(op, {"X": x}, {"dims": axes_of(c, x)})


@recipe("reverse")
def reverse(c: Chooser, op: str) -> Case:
    x = anything(c)
    return case(op, {"X": x}, {"axis": axes_of(c, x)})


@recipe("roll")
def roll(c: Chooser, op: str) -> Case:
    x = anything(c)
    dims = axes_of(c, x)
    return case(op, {"X": x}, {"dims": dims, "shifts": [c.int(-9, 9) for _ in dims]})


@recipe("pad")
def pad(c: Chooser, op: str) -> Case:
    x = anything(c)
    return case(
        op, {"X": x}, {"paddings": [c.int(0, 3) for _ in range(2 * x.ndim)], "pad_value": c.pick([0.0, -1.5])}
    )


@recipe("pad2d")
def pad2d(c: Chooser, op: str) -> Case:
    x = c.values(c.shape(4, 4, 1), c.pick(["float32", "float64", "int32", "int64"]))
    attrs = {
        "paddings": [c.int(0, 3) for _ in range(4)],
        "mode": c.pick(["constant", "reflect", "edge"]),
        "data_format": c.pick(["NCHW", "NHWC"]),
        "pad_value": c.pick([0.0, 2.0]),
    }
    return case(op, {"X": x}, attrs)


@recipe("pad_constant_like")
def pad_like(c: Chooser, op: str) -> Case:
    x = anything(c)
    return case(
        op,
        {"X": x, "Y": c.values([c.int(0, n) for n in x.shape], str(x.dtype))},
        {"pad_value": c.pick([0.0, 3.0])},
    )


@recipe("crop", "crop_tensor")
def crop(c: Chooser, op: str) -> Case:
    x = c.floats(c.shape(1, 4, 1))
    shape = [c.int(1, n) for n in x.shape]
    offsets = [c.int(0, n - m) for n, m in zip(x.shape, shape, strict=True)]
    if op == "crop_tensor" and c.one_in(3):
        shape[c.int(0, len(shape) - 1)] = -1
    return case(op, {"X": x}, {"shape": shape, "offsets": offsets})


@recipe("gather")
def gather(c: Chooser, op: str) -> Case:
    x = anything(c, 1, 3, 1)
    count = c.dim()
    off = 2 if c.one_in(15) else 0
    index = c.ints(
        (count, 1) if c.one_in(4) else (count,), -off, x.shape[0] - 1 + off, c.pick(["int32", "int64"])
    )
    return case(op, {"X": x, "Index": index}, {"overwrite": c.bool()})


@recipe("gather_nd")
def gather_nd(c: Chooser, op: str) -> Case:
    x = anything(c, 1, 4, 1)
    depth = c.int(1, x.ndim)
    lead = c.shape(1, 2)
    parts = [c.ints(lead, 0, x.shape[k] - 1 + c.one_in(20), "int64") for k in range(depth)]
    return case(op, {"X": x, "Index": np.stack(parts, -1).astype(c.pick(["int32", "int64"]))})


@recipe("scatter")
def scatter(c: Chooser, op: str) -> Case:
    x = c.floats(c.shape(1, 3, 1))
    count = c.dim(1)
    ids = c.ints((count,), 0, x.shape[0] - 1 + c.one_in(20), c.pick(["int32", "int64"]))
    return case(
        op,
        {"X": x, "Ids": ids, "Updates": c.floats((count, *x.shape[1:]), str(x.dtype))},
        {"overwrite": c.bool()},
    )


@recipe("scatter_nd_add")
def scatter_nd_add(c: Chooser, op: str) -> Case:
    x = c.floats(c.shape(1, 3, 1))
    depth = c.int(1, x.ndim)
    lead = c.shape(1, 2, 1)
    parts = [c.ints(lead, 0, x.shape[k] - 1, "int64") for k in range(depth)]
    updates = c.floats((*lead, *x.shape[depth:]), str(x.dtype))
    return case(op, {"X": x, "Index": np.stack(parts, -1), "Updates": updates})


@recipe("index_select")
def index_select(c: Chooser, op: str) -> Case:
    x = anything(c, 1, 4, 1)
    dim = c.int(-x.ndim, x.ndim - 1)
    return case(op, {"X": x, "Index": c.ints((c.dim(1),), 0, x.shape[dim] - 1 + c.one_in(20))}, {"dim": dim})


@recipe("index_sample")
def index_sample(c: Chooser, op: str) -> Case:
    x = anything(c, 2, 2, 1)
    index = c.ints((x.shape[0], c.dim(1)), 0, x.shape[1] - 1 + c.one_in(20), c.pick(["int32", "int64"]))
    return case(op, {"X": x, "Index": index})


@recipe("masked_select")
def masked_select(c: Chooser, op: str) -> Case:
    x = anything(c)
    return case(op, {"X": x, "Mask": c.values(x.shape, "bool")})


@recipe("multiplex")
def multiplex(c: Chooser, op: str) -> Case:
    shape, dtype = c.shape(2, 3, 1), c.pick(ALL[:4])
    count = c.int(2, 4)
    ids = c.ints((shape[0], 1), 0, count - 1 + c.one_in(20), "int32")
    return case(op, {"Ids": ids, "X": [c.values(shape, dtype) for _ in range(count)]})


@recipe("one_hot", "one_hot_v2")
def one_hot(c: Chooser, op: str) -> Case:
    depth = c.int(1, 6)
    shape = c.shape(1, 3)
    shape = (*shape, 1) if op == "one_hot" else shape
    bad = c.one_in(8)
    x = c.ints(shape, -1 if bad else 0, depth if bad else depth - 1, c.pick(["int32", "int64"]))
    return case(
        op, {"X": x}, {"depth": depth, "dtype": c.pick([5, 5, 6, 3]), "allow_out_of_range": c.one_in(4)}
    )


@recipe("shard_index")
def shard_index(c: Chooser, op: str) -> Case:
    n, shards = c.int(1, 20), c.int(1, 4)
    attrs = {"index_num": n, "nshards": shards, "shard_id": c.int(0, shards - 1), "ignore_value": -1}
    return case(op, {"X": c.ints((c.dim(1), 1), 0, n - 1 + c.one_in(9))}, attrs)


@recipe("diag")
def diag(c: Chooser, op: str) -> Case:
    return case(op, {"Diagonal": c.values(c.shape(1, 1, 1), c.pick(ALL[:4]))})


@recipe("diag_embed")
def diag_embed(c: Chooser, op: str) -> Case:
    x = c.values(c.shape(1, 3, 1), c.pick(ALL[:4]))
    one, two = (int(k) for k in c.rng().permutation(x.ndim + 1)[:2])
    return case(
        op, {"Input": x}, {"offset": c.int(-3, 3), "dim1": one - (x.ndim + 1) * c.bool(), "dim2": two}
    )


@recipe("trace")
def trace(c: Chooser, op: str) -> Case:
    x = c.values(c.shape(2, 4, 1), c.pick(ALL[:4]))
    one, two = (int(k) for k in c.rng().permutation(x.ndim)[:2])
    return case(op, {"Input": x}, {"offset": c.int(-3, 3), "dim1": one - x.ndim * c.bool(), "dim2": two})


@recipe("tril_triu")
def tril(c: Chooser, op: str) -> Case:
    x = c.values(c.shape(2, 4), c.pick(ALL[:4]))
    return case(op, {"X": x}, {"diagonal": c.int(-4, 4), "lower": c.bool()})


@recipe("meshgrid")
def meshgrid(c: Chooser, op: str) -> Case:
    dtype, count = c.pick(ALL[:4]), c.int(1, 4)
    return case(op, {"X": [c.values((c.int(1, 4),), dtype) for _ in range(count)]}, outputs={"Out": count})


@recipe("shuffle_channel")
def shuffle_channel(c: Chooser, op: str) -> Case:
    group = c.int(1, 3)
    return case(
        op, {"X": c.floats((c.dim(1), group * c.int(1, 3), c.int(1, 4), c.int(1, 4)))}, {"group": group}
    )


@recipe("pixel_shuffle")
def pixel_shuffle(c: Chooser, op: str) -> Case:
    r = c.int(1, 3)
    return case(
        op, {"X": c.floats((c.dim(1), r * r * c.int(1, 2), c.int(1, 4), c.int(1, 4)))}, {"upscale_factor": r}
    )


@recipe("space_to_depth")
def space_to_depth(c: Chooser, op: str) -> Case:
    r = c.int(2, 3)
    return case(
        op,
        {"X": c.floats((c.dim(1), r * r * c.int(1, 2), r * c.int(1, 3), r * c.int(1, 3)))},
        {"blocksize": r},
    )


@recipe("temporal_shift")
def temporal_shift(c: Chooser, op: str) -> Case:
    t = c.int(1, 3)
    x = c.floats((t * c.int(1, 3), c.int(1, 8), c.int(1, 3), c.int(1, 3)))
    return case(op, {"X": x}, {"seg_num": t, "shift_ratio": c.pick([0.25, 0.1, 0.49])})


@recipe("unique", "unique_with_counts")
def unique(c: Chooser, op: str) -> Case:
    return case(op, {"X": c.values((c.dim(1),), c.pick(ALL[:4]), "plain")}, {"dtype": c.pick([2, 3])})


@recipe("range")
def arange(c: Chooser, op: str) -> Case:
    dtype = c.pick(ALL[:4])
    start, count = c.int(-5, 5), c.int(0, 9)
    step = c.pick([1, 2, 3, -1, -2])
    numbers = (start, start + step * count, step)
    return case(
        op, {slot: np.array([n], dtype) for slot, n in zip(("Start", "End", "Step"), numbers, strict=True)}
    )


@recipe("linspace")
def linspace(c: Chooser, op: str) -> Case:
    dtype = c.real()
    ends = {slot: np.array([c.int(-5, 5)], dtype) for slot in ("Start", "Stop")}
    return case(op, {**ends, "Num": np.array([c.int(1, 9)], "int32")})


@recipe("eye")
def eye(c: Chooser, op: str) -> Case:
    return case(
        op, {}, {"num_rows": c.int(0, 5), "num_columns": c.pick([-1, 0, 1, 4]), "dtype": c.pick([5, 6, 2, 3])}
    )


@recipe("fill_constant")
def fill_constant(c: Chooser, op: str) -> Case:
    attrs = {"shape": list(c.shape()), "dtype": c.pick([5, 6, 2, 3, 0]), "value": c.pick([0.0, 1.0, -2.5])}
    if c.one_in(4):
        attrs["str_value"] = c.pick(["7", "2.5", "9007199254740993", "-1", "inf", "nan"])
    return case(op, {}, attrs)


@recipe("fill_constant_batch_size_like")
def fill_like(c: Chooser, op: str) -> Case:
    x, shape = c.floats(c.shape(1, 3, 1)), list(c.shape(1, 3, 1))
    attrs = {
        "shape": shape,
        "dtype": c.pick([5, 6, 2, 3, 0]),
        "value": c.pick([0.0, 1.0, -2.5]),
        "input_dim_idx": c.int(0, x.ndim - 1),
        "output_dim_idx": c.int(0, len(shape) - 1),
    }
    return case(op, {"Input": x}, attrs)


@recipe("assign_value")
def assign_value(c: Chooser, op: str) -> Case:
    shape = c.shape(1, 2, 1)
    kind, number = c.pick([("fp32_values", 5), ("int32_values", 2), ("int64_values", 3), ("bool_values", 0)])
    dtype = {5: "float32", 2: "int32", 3: "int64", 0: "bool"}[number]
    values = c.values((int(np.prod(shape)),), dtype, "plain").tolist()
    return case(op, {}, {"shape": list(shape), "dtype": number, kind: values})
