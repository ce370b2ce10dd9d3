"""Softmax along rows, and cross entropy of logits."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, NamedTuple

from ....base.sizes.shapes import rows_along
from .. import faults, launch
from .reductions import team
from .updates import tickets

if TYPE_CHECKING:
    from ..device import CudaDevice


def softmax(device: CudaDevice, X: Any, axis: int) -> Any:
    """Launcher of `softmax`."""
    rows = rows_along(X.shape, axis)
    if rows is None or not launch.real(X):
        return NotImplemented
    out = device.xp.empty(X.shape, X.dtype)
    _by_rows("softmax", rows, X.dtype, launch.dense(device, X), out, *rows)
    return out


def softmax_grad(device: CudaDevice, Out: Any, Out_grad: Any, axis: int) -> Any:
    """Launcher of `softmax_grad`."""
    rows = rows_along(Out.shape, axis)
    if rows is None or not launch.real(Out, Out_grad):
        return NotImplemented
    dx = device.xp.empty(Out.shape, Out.dtype)
    args = (launch.dense(device, Out), launch.dense(device, Out_grad), dx)
    _by_rows("softmax_grad", rows, Out.dtype, *args, *rows)
    return dx


def _by_rows(function: str, rows: tuple[int, int], dtype: Any, *arguments: Any) -> None:
    """Launch a kernel of `softmax.cu` for `rows`: their number and their length."""
    if rows[0] and rows[1]:
        name, blocks, threads = team(*rows)
        launch.grid("softmax", function + name, dtype, blocks, threads, *arguments)


class Loss(NamedTuple):
    """Results of `label_losses`: softmax, loss of each row, probability of its label, mean of all losses."""

    softmax: Any
    loss: Any
    match: Any = None
    mean: Any = None


def label_losses(
    device: CudaDevice,
    op_type: str,
    logits: Any,
    label: Any,
    rows: tuple[int, int],
    ignore: int,
    softmax: bool = True,
    match: bool = False,
    mean: bool = False,
) -> Loss:
    """The cross entropy of `logits`, seen as `rows`, and labels (int32 or int64), in one launch.

    `softmax`, `match`, `mean`: the further wanted results.
    With `match` the loss is the negative logarithm of that probability, else computed from the logits. `op_type`: the
    operator in error messages.
    """
    xp, dtype = device.xp, logits.dtype
    found = Loss(
        xp.empty(logits.shape, dtype) if softmax else None,
        xp.empty((rows[0],), dtype),
        xp.empty((rows[0],), dtype) if match else None,
        xp.empty((1,), dtype) if mean else None,
    )
    mark = faults.mark(device, op_type, "Label", rows[1], "classes", ignore)
    labels = (launch.dense(device, label), launch.wide(label))
    ticket = tickets(device) if mean else None
    args = (launch.dense(device, logits), *labels, *found, ticket, *rows, ignore, *mark)
    _by_rows("cross_entropy_probable" if match else "cross_entropy_hard", rows, dtype, *args)
    return found


def label_losses_grad(
    device: CudaDevice,
    op_type: str,
    softmax: Any,
    label: Any,
    g: Any,
    rows: tuple[int, int],
    ignore: int,
    factor: float = 1.0,
) -> Any:
    """The gradient of a loss of `label_losses` for the logits; `g`: that of each row's loss, or one element for all.

    `g` is multiplied by `factor`.
    """
    dx = device.xp.empty(softmax.shape, softmax.dtype)
    mark = faults.mark(device, op_type, "Label", rows[1], "classes", ignore)
    labels = (launch.dense(device, label), launch.wide(label))
    share = (launch.dense(device, g), g.size == 1, factor)
    args = (launch.dense(device, softmax), *labels, *share, dx, dx.size, rows[1], ignore, *mark)
    launch.each("softmax", "cross_entropy_hard_grad", dx.dtype, dx.size, *args)
    return dx


def cross_entropy(
    device: CudaDevice,
    Logits: Any,
    Label: Any,
    soft_label: bool,
    ignore_index: int,
    axis: int,
    wanted: Collection[str] | None = None,
) -> Any:
    """Launcher of `softmax_with_cross_entropy`."""
    xp, rows = device.xp, rows_along(Logits.shape, axis)
    if rows is None or not launch.real(Logits, Label if soft_label else None):
        return NotImplemented
    axis = axis % Logits.ndim
    shape = (*Logits.shape[:axis], 1, *Logits.shape[axis + 1 :])
    some = wanted is None or "Softmax" in wanted
    if soft_label:
        loss = xp.empty(shape, Logits.dtype)
        probabilities = xp.empty(Logits.shape, Logits.dtype) if some else None
        args = (launch.dense(device, Logits), launch.dense(device, Label), probabilities, loss, *rows)
        _by_rows("cross_entropy_soft", rows, Logits.dtype, *args)
        return probabilities, loss
    if not launch.is_index(Label):
        return NotImplemented
    found = label_losses(device, "softmax_with_cross_entropy", Logits, Label, rows, ignore_index, some)
    return found.softmax, found.loss.reshape(shape)


def cross_entropy_grad(
    device: CudaDevice,
    Softmax: Any,
    Label: Any,
    Loss_grad: Any,
    soft_label: bool,
    ignore_index: int,
    axis: int,
) -> Any:
    """Launcher of `softmax_with_cross_entropy_grad`."""
    rows = rows_along(Softmax.shape, axis)
    if rows is None or not launch.real(Softmax, Loss_grad, Label if soft_label else None):
        return NotImplemented
    if soft_label:
        dx = device.xp.empty(Softmax.shape, Softmax.dtype)
        softmax, label, g = (launch.dense(device, array) for array in (Softmax, Label, Loss_grad))
        args = (softmax, label, g, dx, dx.size, rows[1])
        launch.each("softmax", "cross_entropy_soft_grad", dx.dtype, dx.size, *args)
        return dx
    if not launch.is_index(Label):
        return NotImplemented
    op_type = "softmax_with_cross_entropy_grad"
    return label_losses_grad(device, op_type, Softmax, Label, Loss_grad, rows, ignore_index)
