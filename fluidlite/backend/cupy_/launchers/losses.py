"""Launchers of softmax, cross entropy, the largest elements of rows, and accuracy."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, NamedTuple

from ....base.sizes import rows_along
from .. import faults, launch
from .elementwise import team
from .updates import tickets

if TYPE_CHECKING:
    from ..device import CudaDevice


def _loss_shape(X: Any, Label: Any) -> tuple[int, ...]:
    """Labels of the rank of X keep their last dimension of 1, others have none."""
    return (*X.shape[:-1], 1) if Label.ndim == X.ndim else tuple(X.shape[:-1])


def cross_entropy(device: CudaDevice, X: Any, Label: Any, soft_label: bool, ignore_index: int) -> Any:
    """Launcher of `cross_entropy`."""
    if not soft_label:
        found = _label_losses(device, "cross_entropy", X, Label, ignore_index, match=False)
        return found if found is NotImplemented else found[0]
    if not launch.real(X, Label):
        return NotImplemented
    n = X.shape[-1]
    y = device.xp.empty((*X.shape[:-1], 1), X.dtype)
    if y.size:
        name, blocks, threads = team(y.size, n)
        args = (launch.dense(device, X), launch.dense(device, Label), y, y.size, n)
        launch.grid("losses", f"cross_entropy_soft{name}", X.dtype, blocks, threads, *args)
    return y


def _label_losses(device: CudaDevice, op_type: str, X: Any, Label: Any, ignore: int, match: bool) -> Any:
    """The loss of each row and the probability of its label."""
    if not launch.real(X) or not launch.is_index(Label):
        return NotImplemented
    n = X.shape[-1]
    y = device.xp.empty(_loss_shape(X, Label), X.dtype)
    matches = device.xp.empty((*X.shape[:-1], 1), X.dtype) if match else None
    mark = faults.mark(device, op_type, "Label", n, "classes", ignore)
    labels = (launch.dense(device, Label), launch.wide(Label))
    args = (launch.dense(device, X), *labels, y, matches, y.size, n, ignore, *mark)
    launch.each("losses", "cross_entropy", X.dtype, y.size, *args)
    return y, matches


def cross_entropy2(device: CudaDevice, X: Any, Label: Any, ignore_index: int) -> Any:
    """Launcher of `cross_entropy2`."""
    found = _label_losses(device, "cross_entropy2", X, Label, ignore_index, match=True)
    if found is NotImplemented:
        return NotImplemented
    return found[0], device.xp.empty((*X.shape, 0), X.dtype), found[1]


def cross_entropy_grad(
    device: CudaDevice, X: Any, Label: Any, Y_grad: Any, soft_label: bool, ignore_index: int
) -> Any:
    """Launcher of `cross_entropy_grad`."""
    if not soft_label:
        return _grad(device, "cross_entropy_grad", X, None, Label, Y_grad, X.shape, ignore_index)
    if not launch.real(X, Label, Y_grad):
        return NotImplemented
    dx = device.xp.empty(X.shape, X.dtype)
    args = (*(launch.dense(device, array) for array in (X, Label, Y_grad)), dx, dx.size, X.shape[-1])
    launch.each("losses", "cross_entropy_soft_grad", X.dtype, dx.size, *args)
    return dx


def cross_entropy_grad2(
    device: CudaDevice, Label: Any, MatchX: Any, XShape: Any, Y_grad: Any, ignore_index: int
) -> Any:
    """Launcher of `cross_entropy_grad2`."""
    shape = XShape.shape[:-1]
    return _grad(device, "cross_entropy_grad2", None, MatchX, Label, Y_grad, shape, ignore_index)


def _grad(
    device: CudaDevice, op_type: str, X: Any, MatchX: Any, Label: Any, Y_grad: Any, shape: Any, ignore: int
) -> Any:
    if not launch.real(Y_grad, X, MatchX) or not launch.is_index(Label):
        return NotImplemented
    dx = device.xp.empty(shape, Y_grad.dtype)
    mark = faults.mark(device, op_type, "Label", shape[-1], "classes", ignore)
    x, match, label, g = (launch.dense(device, array) for array in (X, MatchX, Label, Y_grad))
    args = (x, match, label, launch.wide(Label), g, dx, dx.size, shape[-1], ignore, *mark)
    launch.each("losses", "cross_entropy_grad", dx.dtype, dx.size, *args)
    return dx


def _share(device: CudaDevice, Label: Any, ignore: int, normalize: bool) -> Any:
    """The weight 1 / (number of labels that are not ignored), as an array of one element; None for 1."""
    if not normalize or not Label.size:
        return None
    out = device.xp.empty((1,), Label.dtype)
    args = (launch.dense(device, Label), out, Label.size, float(ignore))
    launch.grid("losses", "share_of_each", Label.dtype, 1, 1024, *args)
    return out


def sigmoid_cross_entropy(device: CudaDevice, X: Any, Label: Any, normalize: bool, ignore_index: int) -> Any:
    """Launcher of `sigmoid_cross_entropy_with_logits`."""
    if not launch.real(X, Label) or X.shape != Label.shape:
        return NotImplemented
    share = _share(device, Label, ignore_index, normalize)
    out = device.xp.empty(X.shape, X.dtype)
    args = (launch.dense(device, X), launch.dense(device, Label), share, out, X.size, float(ignore_index))
    launch.each("losses", "sigmoid_cross_entropy", X.dtype, X.size, *args)
    return out


def sigmoid_cross_entropy_grad(
    device: CudaDevice, X: Any, Label: Any, Out_grad: Any, normalize: bool, ignore_index: int
) -> Any:
    """Launcher of `sigmoid_cross_entropy_with_logits_grad`."""
    if not launch.real(X, Label, Out_grad) or X.shape != Label.shape:
        return NotImplemented
    share = _share(device, Label, ignore_index, normalize)
    dx = device.xp.empty(X.shape, X.dtype)
    x, label, g = (launch.dense(device, array) for array in (X, Label, Out_grad))
    args = (x, label, share, g, dx, X.size, float(ignore_index))
    launch.each("losses", "sigmoid_cross_entropy_grad", X.dtype, X.size, *args)
    return dx


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


def softmax_cross_entropy(
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


def softmax_cross_entropy_grad(
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


_FEW = 32
"""The largest k for the kernel, which scans a row once for each of its k elements; larger ones are sorted."""


def top_k(device: CudaDevice, X: Any, K: Any, k: int) -> Any:
    """Launcher of `top_k`."""
    if K is not None or not launch.real(X) or not 1 <= k <= min(_FEW, X.shape[-1]):
        return NotImplemented
    n = X.shape[-1]
    out = device.xp.empty((*X.shape[:-1], k), X.dtype)
    places = device.xp.empty(out.shape, "int64")
    if out.size:
        name, blocks, threads = team(X.size // n, n)
        args = (launch.dense(device, X), out, places, X.size // n, n, k)
        launch.grid("metrics", f"top_k{name}", X.dtype, blocks, threads, *args)
    return out, places


def accuracy(device: CudaDevice, Indices: Any, Label: Any) -> Any:
    """Launcher of `accuracy`."""
    if not launch.is_index(Indices) or not launch.is_index(Label):
        return NotImplemented
    share, correct, total = (device.xp.empty((1,), kind) for kind in ("float32", "int32", "int32"))
    given = [part for x in (Indices, Label) for part in (launch.dense(device, x), launch.wide(x))]
    results = (share, correct, total, *Indices.shape[:2])
    launch.grid("metrics", "accuracy", "float32", 1, 1024, *given, *results)
    return share, correct, total
