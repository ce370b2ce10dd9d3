"""Operators of recommendation models: partial_concat, partial_sum, shuffle_batch, rank_attention, tdm_child,
tdm_sampler.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...backend.functions import add_at
from ...base.dtypes import VarType, to_numpy, to_vartype
from ..grad_pairs import register_pair
from ..host_fallback import hosted
from ..infer import may_equal, product
from ..registry import Effects, OperatorError, OpView, Sequences, register
from ..value_checks import require_in_range


def _columns(width: int, start: int, length: int) -> tuple[int, int]:
    """The first column and how many: all that follow for a negative length."""
    start += width if start < 0 else 0
    return start, width - start if length < 0 else length


def _parts(X: list[Any], start_index: int, length: int) -> list[Any]:
    start, count = _columns(X[0].shape[1], start_index, length)
    return [x[:, start : start + count] for x in X]


def _concat(xp: Any, X: list[Any], start_index: int, length: int) -> Any:
    return xp.concatenate(_parts(X, start_index, length), axis=1)


def _sum(xp: Any, X: list[Any], start_index: int, length: int) -> Any:
    first, *rest = _parts(X, start_index, length)
    result = first.copy()
    for part in rest:
        result += part
    return result


def _put_back(xp: Any, X: list[Any], parts: list[Any], start: int) -> list[Any]:
    result = [xp.zeros_like(x) for x in X]
    for whole, part in zip(result, parts, strict=True):
        whole[:, start : start + part.shape[1]] = part
    return result


def _concat_grad(xp: Any, X: list[Any], Out_grad: Any, start_index: int, length: int) -> Any:
    start, count = _columns(X[0].shape[1], start_index, length)
    parts = [Out_grad[:, k * count : (k + 1) * count] for k in range(len(X))]
    return _put_back(xp, X, parts, start)


def _sum_grad(xp: Any, X: list[Any], Out_grad: Any, start_index: int, length: int) -> Any:
    start, _ = _columns(X[0].shape[1], start_index, length)
    return _put_back(xp, X, [Out_grad] * len(X), start)


def _infer(op: OpView, sides: int, lowest: int) -> None:
    shapes = [op.shape("X", k) for k in range(op.count("X"))]
    first = shapes[0]
    for shape in shapes:
        if len(shape) != 2 or not may_equal(shape, first):
            raise op.fail(f"X must be matrices [rows, width] of one shape, got {[list(s) for s in shapes]}")
    width, start, length = first[1], op.attr("start_index"), op.attr("length")
    if width < 0:
        op.set("Out", (first[0], -1), op.dtype("X"))
        return
    begin, count = _columns(width, start, length)
    if not lowest * width <= start < width or begin + count > width:
        raise op.fail(
            f"start_index must be in [{lowest * width}, {width}) and the columns end at {width}, "
            f"got start_index {start} and length {length}"
        )
    op.set("Out", (first[0], count * sides), op.dtype("X"))


def _infer_concat(op: OpView) -> None:
    _infer(op, op.count("X"), -1)


def _infer_sum(op: OpView) -> None:
    _infer(op, 1, 0)


_ATTRS = {"start_index": 0, "length": -1}

register_pair(
    "partial_concat",
    ("X*",),
    _concat,
    _concat_grad,
    _infer_concat,
    "`length` columns of each matrix from start_index on, side by side.",
    attrs=_ATTRS,
    keep=("X#",),
)
register_pair(
    "partial_sum",
    ("X*",),
    _sum,
    _sum_grad,
    _infer_sum,
    "`length` columns of each matrix from start_index on, added up.",
    attrs=_ATTRS,
    keep=("X#",),
)

_FACTOR, _PRIME = 16807, 2**31 - 1


def _places(count: int, seed: int) -> tuple[list[int], int]:
    """A random permutation of `count` rows (Fisher-Yates with minstd_rand0, as in Fluid), and the next state."""
    state = seed % 2**64 % _PRIME or 1
    places = list(range(count))
    for last in range(1, count):
        share = (_PRIME - 2) // (last + 1)
        while True:
            state = state * _FACTOR % _PRIME
            if state - 1 < share * (last + 1):
                break
        other = (state - 1) // share
        places[last], places[other] = places[other], places[last]
    return places, state * _FACTOR % _PRIME


@hosted
def _shuffle(xp: Any, X: Any, Seed: Any, startup_seed: int) -> Any:
    seed = startup_seed if Seed is None or not Seed.size else int(Seed.reshape(-1)[0])
    rows = X.reshape(-1, X.shape[-1])
    places, state = _places(len(rows), seed)
    made = np.empty_like(rows)
    made[places] = rows
    return made.reshape(X.shape), np.array(places, np.int64), np.array([state])


def _shuffle_grad(xp: Any, ShuffleIdx: Any, Out_grad: Any) -> Any:
    return Out_grad.reshape(-1, Out_grad.shape[-1])[ShuffleIdx].reshape(Out_grad.shape)


def _shuffle_batch_infer(op: OpView) -> None:
    shape = op.shape("X")
    op.set("Out", shape, op.dtype("X"))
    op.set("ShuffleIdx", (-1 if min(shape) < 0 else product(shape[:-1]),), VarType.INT64)
    if not op.building:
        op.set("SeedOut", (1,), VarType.INT64)


register_pair(
    "shuffle_batch",
    ("X", "Seed"),
    _shuffle,
    _shuffle_grad,
    _shuffle_batch_infer,
    "All rows (what the last dimension holds) in another order; SeedOut: the seed of the next run.",
    outputs=("Out", "ShuffleIdx", "SeedOut"),
    attrs={"startup_seed": 0},
    keep=(),
    keep_out=("ShuffleIdx",),
    no_grad=("Seed", "ShuffleIdx", "SeedOut"),
    sequences=Sequences(source={"Out": "X", "SeedOut": "Seed"}),
    effects=Effects(random=True, uninitialized=("Seed",)),
)


def _blocks(xp: Any, RankOffset: Any, MaxRank: int) -> tuple[Any, Any, Any]:
    """For each row and rank: the row of X, the block of RankParam, and whether there is a neighbour."""
    own = RankOffset[:, :1] - 1
    others, index = RankOffset[:, 1::2] - 1, RankOffset[:, 2::2]
    there = (own >= 0) & (others >= 0)
    zero = xp.zeros((), RankOffset.dtype)
    return xp.where(there, index, zero), xp.where(there, own * MaxRank + others, zero), there


def _gathered(xp: Any, X: Any, RankOffset: Any, MaxRank: int) -> tuple[Any, Any]:
    rows, blocks, there = _blocks(xp, RankOffset, MaxRank)
    return X[rows] * there[..., None].astype(X.dtype), blocks


def _attention(xp: Any, X: Any, RankOffset: Any, RankParam: Any, MaxRank: int) -> Any:
    seen, blocks = _gathered(xp, X, RankOffset, MaxRank)
    table = RankParam.reshape(MaxRank * MaxRank, X.shape[1], -1)
    return (seen[..., None] * table[blocks]).sum(axis=(1, 2))


def _attention_grad(xp: Any, X: Any, RankOffset: Any, RankParam: Any, Out_grad: Any, MaxRank: int) -> Any:
    seen, blocks = _gathered(xp, X, RankOffset, MaxRank)
    made = xp.zeros((MaxRank * MaxRank, X.shape[1], Out_grad.shape[1]), RankParam.dtype)
    parts = seen[..., None] * Out_grad[:, None, None, :]
    add_at(xp, made, blocks.reshape(-1), parts.reshape(-1, *made.shape[1:]))
    return made.reshape(RankParam.shape)


def _rank_attention_infer(op: OpView) -> None:
    x, offsets, table, ranks = (
        op.shape("X"),
        op.shape("RankOffset"),
        op.shape("RankParam"),
        op.attr("MaxRank"),
    )
    if op.dtype("RankOffset") != VarType.INT32:
        raise op.fail(f"RankOffset must be int32, got {op.dtype('RankOffset')}")
    if len(x) != 2 or len(offsets) != 2 or offsets[1] != 2 * ranks + 1 or offsets[0] != x[0]:
        raise op.fail(
            f"X must be [rows, width] and RankOffset [rows, {2 * ranks + 1}], got {list(x)} and {list(offsets)}"
        )
    if len(table) != 2 or table[0] != ranks * ranks * x[1]:
        raise op.fail(f"RankParam must have {ranks * ranks} * {x[1]} rows, got shape {list(table)}")
    op.set("Out", (x[0], table[1]), op.dtype("X"))


register_pair(
    "rank_attention",
    ("X", "RankOffset", "RankParam"),
    _attention,
    _attention_grad,
    _rank_attention_infer,
    "The sum of products of neighbours, rows of X, with the blocks of RankParam for both ranks.",
    attrs={"MaxRank": 3},
    no_grad=("X", "RankOffset"),
)


def _child(xp: Any, X: Any, TreeInfo: Any, child_nums: int, dtype: int) -> Any:
    """A row of TreeInfo is a node's item, layer, parent and children; 0 means none."""
    require_in_range(xp, "tdm_child", "X", X, len(TreeInfo), "nodes in TreeInfo")
    kind = to_numpy(to_vartype(dtype))
    has = (X != 0) & (TreeInfo[X, 3] != 0)
    children = xp.where(has[..., None], TreeInfo[X, 3 : 3 + child_nums], 0)
    leaves = has[..., None] & (TreeInfo[children, 0] != 0)
    return children.astype(kind), leaves.astype(kind)


def _infer_child(op: OpView) -> None:
    info, count = op.shape("TreeInfo"), op.attr("child_nums")
    if len(info) != 2 or (info[1] >= 0 and info[1] < 3 + count):
        raise op.fail(f"TreeInfo must be [nodes, 3 + child_nums] with child_nums {count}, got {list(info)}")
    for slot in ("Child", "LeafMask"):
        op.set(slot, (*op.shape("X"), count), to_vartype(op.attr("dtype")))


register(
    "tdm_child",
    ("X", "TreeInfo"),
    ("Child", "LeafMask"),
    {"child_nums": 0, "dtype": int(VarType.INT32)},
    infer=_infer_child,
    kernel=_child,
    no_grad=("Child", "LeafMask"),
    doc="The children of nodes of a tree, and which of them are leaves.",
)


@hosted
def _sampler(
    xp: Any,
    X: Any,
    Travel: Any,
    Layer: Any,
    output_positive: bool,
    neg_samples_num_list: list[int],
    layer_offset_lod: list[int],
    seed: int,
    dtype: int,
) -> Any:
    """Node 0 in a path means that it ends before this layer."""
    items, nodes = X.reshape(-1), Layer.reshape(-1)
    require_in_range(np, "tdm_sampler", "X", items, len(Travel), "paths in Travel")
    rng = np.random.default_rng(seed or None)
    made: tuple[list[Any], ...] = [], [], []
    for item in items.tolist():
        row: list[tuple[int, int, int]] = []
        for layer, count in enumerate(neg_samples_num_list):
            choice = nodes[layer_offset_lod[layer] : layer_offset_lod[layer + 1]]
            node = int(Travel[item, layer])
            if node == 0:
                row += [(0, 0, 0)] * (count + output_positive)
                continue
            others = choice[choice != node]
            if count > len(others):
                raise OperatorError(
                    f"operator tdm_sampler: layer {layer} has {len(others)} nodes besides the wanted one, too few for "
                    f"{count} samples"
                )
            row += [(node, 1, 1)] * output_positive
            row += [(int(n), 0, 1) for n in rng.choice(others, count, replace=False)]
        for found, column in zip(made, zip(*row, strict=True), strict=True):
            found.append(column)
    kind = to_numpy(to_vartype(dtype))
    return tuple(np.array(found, kind).reshape(len(items), -1) for found in made)


def _infer_sampler(op: OpView) -> None:
    counts, offsets = op.attr("neg_samples_num_list"), op.attr("layer_offset_lod")
    if len(offsets) != len(counts) + 1:
        raise op.fail(
            f"layer_offset_lod must have a number more than neg_samples_num_list, got {list(offsets)} and "
            f"{list(counts)}"
        )
    for layer, count in enumerate(counts):
        if not 0 <= count < offsets[layer + 1] - offsets[layer]:
            raise op.fail(
                f"neg_samples_num_list must be less than the nodes of each layer, got {count} of "
                f"{offsets[layer + 1] - offsets[layer]} in layer {layer}"
            )
    rows, width = op.shape("X")[0], sum(counts) + len(counts) * bool(op.attr("output_positive"))
    for slot in ("Out", "Labels", "Mask"):
        op.set(slot, (rows, width), to_vartype(op.attr("dtype")))


register(
    "tdm_sampler",
    ("X", "Travel", "Layer"),
    ("Out", "Labels?", "Mask"),
    {
        "output_positive": True,
        "neg_samples_num_list": [],
        "layer_offset_lod": [],
        "seed": 0,
        "dtype": int(VarType.INT32),
    },
    infer=_infer_sampler,
    kernel=_sampler,
    no_grad=("Out", "Labels", "Mask"),
    sequences=Sequences(source=None),
    effects=Effects(random=True),
    doc="For each layer of a tree the node on the path to an item, and random others, with Labels 1 and 0.",
)
