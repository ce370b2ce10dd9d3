"""Cross entropy of probabilities and of independent yes/no questions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import faults, launch
from .reductions import team

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
    launch.each(
        "losses",
        "sigmoid_cross_entropy_grad",
        X.dtype,
        X.size,
        x,
        label,
        share,
        g,
        dx,
        X.size,
        float(ignore_index),
    )
    return dx
