"""Tree-based convolution (Mou et al. 2016): each node with its descendants, weighed by their positions."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._ext.forks import library_call
from ...backend import to_host
from ..grad_pairs import register_pair
from ..infer import require_same_dtype
from ..registry import OperatorError, OpView, Sequences


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


def _infer(op: OpView) -> None:
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
    _infer,
    "Filters over each node of a tree and its descendants above max_depth; nodes count from 1.",
    attrs={"max_depth": 2},
    no_grad=("EdgeSet",),
    sequences=Sequences(source=None),
)
