"""Hierarchical sigmoid: classes are the leaves of a binary tree, with a decision at each inner node of their path."""

from __future__ import annotations

from typing import Any

from ...base.dtypes import FLOATS
from ..grad_pairs import register_pair
from ..infer import product
from ..registry import Call, OpView, Planning, RowRule, Sequences, grad_name
from ..tensor.selected_rows import copy_call
from ..value_checks import require_in_range
from .class_scores import call_of, check_rows, grad_calls, scores_grad, scores_of

LIMIT = 40.0
"""Scores are cut to the range from -LIMIT to LIMIT."""


def _depth(classes: int) -> int:
    """The maximum number of decisions in the path of a class."""
    return (classes - 1).bit_length()


def _paths(xp: Any, Label: Any, PathTable: Any, PathCode: Any, classes: int) -> tuple[Any, Any, Any]:
    """For each row and decision: the inner node, the branch taken (0 or 1), and whether there is a decision.

    A path ends at the first negative number of the table. Without a table, the path of class c is the bits of
    c + classes, from the lowest up.
    """
    label = Label.reshape(-1)
    if PathTable is not None:
        exists = (PathTable < 0).cumsum(axis=1) == 0
        return xp.where(exists, PathTable, 0), xp.where(exists, PathCode, 0), exists
    require_in_range(xp, "hierarchical_sigmoid", "Label", label, classes, "classes")
    code = (label + classes)[:, None]
    bit = xp.arange(_depth(classes))
    node = (code >> (bit + 1)) - 1
    exists = node >= 0
    return xp.where(exists, node, 0), xp.where(exists, (code >> bit) & 1, 0), exists


def _hsigmoid(
    xp: Any, X: Any, W: Any, Label: Any, PathTable: Any, PathCode: Any, Bias: Any, num_classes: int
) -> Any:
    nodes, ways, exists = _paths(xp, Label, PathTable, PathCode, num_classes)
    require_in_range(xp, "hierarchical_sigmoid", "PathTable", nodes, len(W), "rows in W")
    scores = scores_of(X, W, Bias, nodes)
    scores = xp.clip(xp.where(exists, scores, 0), -LIMIT, LIMIT).astype(X.dtype)
    # As in Fluid a decision that does not exist costs log(2): PreOut has a column for it.
    costs = xp.log1p(xp.exp(scores))
    out = costs.sum(axis=1, keepdims=True) - (ways * scores).sum(axis=1, keepdims=True)
    return out.astype(X.dtype), costs, W


def _hsigmoid_grad(
    xp: Any,
    X: Any,
    W: Any,
    Label: Any,
    PathTable: Any,
    PathCode: Any,
    Bias: Any,
    PreOut: Any,
    Out_grad: Any,
    num_classes: int,
    is_sparse: bool,
) -> Any:
    nodes, ways, exists = _paths(xp, Label, PathTable, PathCode, num_classes)
    slope = -xp.expm1(-PreOut) - ways
    slope = (xp.where(exists, slope, 0) * Out_grad.reshape(-1, 1)).astype(X.dtype)
    return scores_grad(xp, X, W, Bias, nodes, slope, exists if is_sparse else None)


def _infer(op: OpView) -> None:
    x, w, classes = op.shape("X"), op.shape("W"), op.attr("num_classes")
    if len(x) != 2 or len(w) != 2 or (x[1] != w[1] and x[1] >= 0):
        raise op.fail(f"X must be [rows, width] and W [nodes, width], got {list(x)} and {list(w)}")
    if op.dtype("X") not in FLOATS:
        raise op.fail(f"X must be of a float dtype, got {op.dtype('X')}")
    if op.has("PathTable") != op.has("PathCode"):
        raise op.fail("PathTable and PathCode must be given together")
    check_rows(op, "X", "Label", "PathTable", "PathCode")
    if op.has("PathTable") and op.shape("PathCode")[1:] != op.shape("PathTable")[1:]:
        paths = list(op.shape("PathTable")), list(op.shape("PathCode"))
        raise op.fail(f"PathTable and PathCode must be of one shape, got {paths[0]} and {paths[1]}")
    if not op.has("PathTable") and (classes < 2 or w[0] != classes - 1):
        raise op.fail(
            f"num_classes must be at least 2 and W have num_classes - 1 rows, got {classes}, {w[0]}"
        )
    width = op.shape("PathTable")[1] if op.has("PathTable") else _depth(classes)
    op.set("Out", (x[0], 1), op.dtype("X"))
    op.set("PreOut", (x[0], width), op.dtype("X"))
    op.set("W_Out", w, op.dtype("W"))


_GIVEN = ("X", "W", "Label", "PathTable", "PathCode", "Bias")
_INTEGERS = ("Label", "PathTable", "PathCode")


def _ints(op: OpView) -> list[int]:
    """The integer arguments of the native kernels."""
    return [*op.shape("PreOut"), *op.shape("W"), op.attr("num_classes")]


def _native(op: OpView) -> list[Call] | None:
    call = call_of(op, "hierarchical_sigmoid", _GIVEN, ("Out", "PreOut"), _INTEGERS, _ints(op))
    if call is None or not op.has("W_Out"):
        return None if call is None else [call]
    return [call, copy_call(op.name("W"), op.name("W_Out"), product(op.shape("W")), op.dtype("W"))]


_native_back, _native_sparse = grad_calls(
    "hierarchical_sigmoid_grad", (*_GIVEN, "PreOut", grad_name("Out")), ("X", "W", "Bias"), _INTEGERS, _ints
)

_ATTRS: dict[str, Any] = {"num_classes": 2, "is_sparse": False, "remote_prefetch": False}

register_pair(
    "hierarchical_sigmoid",
    ("X", "W", "Label", "PathTable?", "PathCode?", "Bias?"),
    _hsigmoid,
    _hsigmoid_grad,
    _infer,
    "The cost of the decisions that lead through a binary tree to the class of each row.",
    outputs=("Out", "PreOut", "W_Out?"),
    attrs=_ATTRS,
    keep_out=("PreOut",),
    no_grad=("Label", "PathTable", "PathCode", "PreOut", "W_Out"),
    sequences=Sequences(source={"Out": "X"}),
    planning=Planning(inplace=(("W_Out", "W"),)),
    native=(_native, _native_back),
    rows_back=RowRule(
        _hsigmoid_grad,
        out=grad_name("W"),
        when="is_sparse",
        count=lambda op: product(op.shape("PreOut")),
        native=_native_sparse,
    ),
)
