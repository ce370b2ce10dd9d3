"""Fully connected layers in one operator, rows of a table by number, and numbers as one-hot vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...base.dtypes import VarType, to_numpy, to_vartype
from ...base.selected_rows import SelectedRows
from .. import planning_rules
from ..grad_pairs import linear_double_grad, register_pair
from ..infer import product
from ..native import element, numel, typed
from ..registry import Call, Dispatch, OpView, Planning, RowRule, Sequences, Shape, grad_name, register
from ..tensor import gather as rows
from ..value_checks import require_in_range

DOUT, DW = grad_name("Out"), grad_name("W")

_INTEGERS = (VarType.INT64, VarType.INT32)


def _lookup(op_type: str) -> Callable[..., Any]:
    def kernel(xp: Any, W: Any, Ids: Any, padding_idx: int, is_sparse: bool = False) -> Any:
        ids = Ids.reshape(-1)
        padding = _padding(padding_idx, len(W), is_sparse)
        require_in_range(xp, op_type, "Ids", ids, len(W), "rows in W", padding if padding >= 0 else None)
        found = W[xp.where(ids == padding, 0, ids)]
        if padding >= 0:
            found = xp.where((ids == padding)[:, None], xp.zeros((), W.dtype), found)
        return found.reshape(*_positions(Ids.shape, op_type), W.shape[1])

    return kernel


def _padding(padding_idx: int, rows: int, is_sparse: bool) -> int:
    """The id of the zero row; -1 for none, or if it is beyond the table and the gradient is sparse."""
    return -1 if padding_idx < 0 or (is_sparse and padding_idx >= rows) else padding_idx


def _lookup_grad(xp: Any, W: Any, Ids: Any, Out_grad: Any, padding_idx: int) -> Any:
    ids = Ids.reshape(-1)
    grads = Out_grad.reshape(-1, W.shape[1])
    if padding_idx >= 0:
        grads = xp.where((ids == padding_idx)[:, None], xp.zeros((), W.dtype), grads)
    total = xp.zeros_like(W)
    xp.add.at(total, xp.where(ids == padding_idx, 0, ids), grads)
    return total


def _positions(ids: Shape, op_type: str) -> Shape:
    """The shape of the output without its last axis: the older operators drop the 1 at the end of that of
    Ids.
    """
    return tuple(ids) if op_type.endswith("_v2") else tuple(ids[:-1])


def _check_ids(op: OpView, slot: str) -> Shape:
    shape = op.shape(slot)
    if op.exact and op.dtype(slot) not in _INTEGERS:
        raise op.fail(f"{slot} must be int64 or int32, got {op.dtype(slot)}")
    if not op.type.endswith("_v2") and (not shape or shape[-1] not in (1, -1)):
        raise op.fail(
            f"the last dimension of {slot} must be 1, got shape {list(shape)}; the forms in fluid itself "
            "(fluid.embedding, fluid.one_hot) take any shape"
        )
    return _positions(shape, op.type)


def _lookup_infer(op: OpView) -> None:
    table = op.shape("W")
    if len(table) != 2:
        raise op.fail(f"W must have 2 dimensions, got {len(table)}")
    op.set("Out", (*_check_ids(op, "Ids"), table[1]), op.dtype("W"))


def _lookup_native(grad: bool) -> Callable[[OpView], Call | None]:
    slots = ("Ids", DOUT, DW) if grad else ("W", "Ids", "Out")

    def select(op: OpView) -> Call | None:
        if grad and op.attr("is_sparse"):
            return None
        name = typed(op, "lookup_table_grad", (DOUT,)) if grad else typed(op, "lookup_table", ("W",))
        if name is None or element(op, "Ids") != "i64":
            return None
        padding = _padding(op.attr("padding_idx"), op.shape("W")[0], op.attr("is_sparse"))
        return Call(name, [op.name(slot) for slot in slots], [numel(op, "Ids"), *op.shape("W"), padding])

    return select


def _sparse_grad(xp: Any, W: Any, Ids: Any, Out_grad: Any) -> SelectedRows:
    # The row of padding_idx gets its gradient too, as in Fluid 1.8; the row is never read.
    return SelectedRows(Ids.reshape(-1).astype("int64"), Out_grad.reshape(-1, W.shape[1]), len(W))


def _sparse_grad_native(op: OpView) -> list[Call] | None:
    kind, count = element(op, "Ids"), numel(op, "Ids")
    if kind not in ("i32", "i64") or element(op, DOUT) is None:
        return None
    numbers, values = rows.parts(op.name(DW))
    if kind == "i64":
        number = rows.copy_call(op.name("Ids"), numbers, count, VarType.INT64)
    else:
        number = Call("cast.i32.i64", [op.name("Ids"), numbers], [count])
    return [number, rows.copy_call(op.name(DOUT), values, numel(op, DOUT), op.dtype(DOUT))]


_LOOKUP = {
    "is_sparse": False,
    "is_distributed": False,
    "padding_idx": -1,
    "remote_prefetch": False,
    "grad_inplace": False,
    "trainer_id": 0,
    "epmap": [],
    "table_names": [],
    "height_sections": [],
}

for _type, _what in (
    ("lookup_table", "whose last dimension, 1, is dropped"),
    ("lookup_table_v2", "of any shape"),
):
    register_pair(
        _type,
        ("W", "Ids"),
        _lookup(_type),
        _lookup_grad,
        _lookup_infer,
        f"The rows of table W that Ids name ({_what}); zeros for padding_idx.",
        attrs=_LOOKUP,
        no_grad=("Ids",),
        sequences=Sequences(source="Ids"),
        planning=Planning(batchable=planning_rules.lookup, pattern="lookup"),
        planning_back=Planning(batchable=planning_rules.lookup),
        grad_grad=linear_double_grad(_type, "W"),
        native=(_lookup_native(grad=False), _lookup_native(grad=True)),
        cuda=(f"moves.lookup:{_type}", "moves.lookup_grad"),
        rows_back=RowRule(
            _sparse_grad,
            out=DW,
            when="is_sparse",
            count=lambda op: product(op.shape("Ids")),
            native=_sparse_grad_native,
        ),
    )


def _one_hot(op_type: str) -> Callable[..., Any]:
    def kernel(xp: Any, X: Any, depth_tensor: Any, depth: int, dtype: int, allow_out_of_range: bool) -> Any:
        if depth_tensor is not None:
            depth = int(depth_tensor.ravel()[0])
        if not allow_out_of_range:
            require_in_range(xp, op_type, "X", X, depth, "classes (depth)")
        ids = X.reshape(*_positions(X.shape, op_type), 1)
        return (ids == xp.arange(depth)).astype(to_numpy(dtype))

    return kernel


def _one_hot_infer(op: OpView) -> None:
    depth = op.attr("depth")
    if op.has("depth_tensor"):
        known = op.value("depth_tensor")
        depth = -1 if known is None else int(known.ravel()[0])
    elif depth < 1:
        raise op.fail(f"depth must be positive, got {depth}")
    op.set("Out", (*_check_ids(op, "X"), depth), to_vartype(op.attr("dtype")))


def _one_hot_native(op: OpView) -> Call | None:
    name = typed(op, "one_hot", ("Out",))
    if name is None or element(op, "X") != "i64" or op.has("depth_tensor"):
        return None
    ints = [product(op.shape("X")), op.attr("depth"), int(op.attr("allow_out_of_range"))]
    return Call(name, [op.name("X"), op.name("Out")], ints)


for _type, _what in (("one_hot", "whose last dimension, 1, is replaced"), ("one_hot_v2", "of any shape")):
    register(
        _type,
        inputs=("X", "depth_tensor?"),
        attrs={"depth": -1, "dtype": int(VarType.FP32), "allow_out_of_range": False},
        infer=_one_hot_infer,
        kernel=_one_hot(_type),
        no_grad=("Out",),
        native=_one_hot_native,
        dispatch=Dispatch(cuda=f"moves.one_hot:{_type}"),
        planning=Planning(batchable=planning_rules.only_x),
        doc=f"A vector with a single 1 for each class number in X ({_what}).",
    )


def _infer(op: OpView) -> None:
    x, w, split = op.shape("Input"), op.shape("W"), op.attr("in_num_col_dims")
    if len(w) != 2:
        raise op.fail(f"W must be a matrix, got {list(w)}")
    if not 0 < split < len(x):
        raise op.fail(f"in_num_col_dims must be in [1, {len(x) - 1}], got {split}")
    width = product(x[split:])
    if width >= 0 <= w[0] and width != w[0]:
        raise op.fail(f"W has {w[0]} rows, but the rows of Input have {width} elements")
    if op.has("Bias") and product(op.shape("Bias")) not in (w[1], -1):
        raise op.fail(f"Bias must have {w[1]} elements, got the shape {list(op.shape('Bias'))}")
    if op.attr("activation_type") == "relu" and not op.has("Bias"):
        raise op.fail("relu needs a Bias, as in Fluid")
    op.set("Out", (*x[:split], w[1]), op.dtype("Input"))


def _fc(xp: Any, Input: Any, W: Any, Bias: Any, in_num_col_dims: int, activation_type: str) -> Any:
    rows, columns = Input.shape[:in_num_col_dims], W.shape[1]
    out = (Input.reshape(product(rows), -1) @ W).reshape(*rows, columns)
    if Bias is not None:
        out = out + Bias.reshape(columns)
    return xp.maximum(out, 0) if activation_type == "relu" else out


register(
    "fc",
    inputs=("Input", "W", "Bias?"),
    attrs={
        "in_num_col_dims": 1,
        "activation_type": "",
        "padding_weights": False,
        "use_mkldnn": False,
        "use_quantizer": False,
        "force_fp32_output": False,
        "Scale_in": 1.0,
        "Scale_weights": [1.0],
        "Scale_out": 1.0,
    },
    infer=_infer,
    kernel=_fc,
    doc="Input, flattened to a matrix after its `in_num_col_dims` first dimensions, times W, plus Bias; then relu, "
    "if `activation_type` says so (Fluid heeds no other).",
)
