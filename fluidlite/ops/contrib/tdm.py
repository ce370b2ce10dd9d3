"""tdm_child, tdm_sampler: nodes of the trees of tree-based deep match (Zhu et al. 2018)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.dtypes import VarType, to_numpy, to_vartype
from ..host_fallback import hosted
from ..registry import Effects, OpDef, OperatorError, OpView, Sequences, register
from ..value_checks import require_in_range


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
    OpDef(
        "tdm_child",
        ("X", "TreeInfo"),
        ("Child", "LeafMask"),
        {"child_nums": 0, "dtype": int(VarType.INT32)},
        infer=_infer_child,
        kernel=_child,
        no_grad=("Child", "LeafMask"),
        doc="The children of nodes of a tree, and which of them are leaves.",
    )
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
    OpDef(
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
)
