"""Updates of the rows of `SelectedRows` without a synchronization: the number of distinct rows stays on the GPU.

Merged rows keep the original length, padded with row -1, as in plans on the CPU.
"""

from __future__ import annotations

from typing import Any

from ....base.selected_rows import SelectedRows
from .. import launch, modules
from ..device import CudaDevice
from .updates import fits, tickets, update

_MOST = 16384
"""The most rows that are merged here, by comparing each with all others."""

_WIDTH = 128


def _merged(device: CudaDevice, grad: SelectedRows) -> SelectedRows:
    """Every distinct row once, with its values added in order; padded with row -1."""
    xp = device.xp
    rows, values = launch.dense(device, grad.rows), launch.dense(device, grad.values)
    made = SelectedRows(xp.empty_like(rows), xp.empty_like(values), grad.height)
    if len(rows):
        width = values.size // len(rows)
        sizes = (len(rows), width, grad.height)
        launch.grid(
            "rows", "merge_rows", values.dtype, len(rows), _WIDTH, rows, values, made.rows, made.values, *sizes,
            macros=_macros(values.dtype),
        )  # fmt: skip
    return made


def _macros(rate: Any) -> dict[str, str]:
    return {"RATE": modules.SCALARS[str(rate)]}


def _takes(op_type: str, grad: SelectedRows, entry: dict[str, Any], attrs: dict[str, Any]) -> bool:
    """Whether the kernels can update these tables."""
    if len(grad.rows) > _MOST or grad.rows.dtype != "int64" or not launch.real(grad.values, entry["Param"]):
        return False
    like = {**entry, "Grad": entry["Param"]}  # a dense gradient of the same type and shape
    return grad.shape == entry["Param"].shape and fits(op_type, like, attrs)


def _run(kernel: str, grad: SelectedRows, rate: Any, arrays: tuple[Any, ...], *numbers: Any) -> None:
    """Launch a kernel for each value of merged rows; the first of `arrays` is the parameter."""
    size = grad.values.size
    width = size // max(1, len(grad.rows))
    param, *state = arrays
    launch.each(
        "rows", kernel, param.dtype, size, grad.rows, grad.values, param, rate, *state, size, width, *numbers,
        macros=_macros(rate.dtype),
    )  # fmt: skip


def sgd(device: CudaDevice, Param: Any, Grad: Any, LearningRate: Any) -> Any:
    """Launcher of `sgd` for SelectedRows."""
    if not _takes("sgd", Grad, {"Param": Param, "LearningRate": LearningRate}, {}):
        return NotImplemented
    _run("sgd_rows", _merged(device, Grad), LearningRate, (Param,))
    return Param


def adagrad(device: CudaDevice, Param: Any, Grad: Any, Moment: Any, LearningRate: Any, epsilon: float) -> Any:
    """Launcher of `adagrad` for SelectedRows."""
    entry = {"Param": Param, "Moment": Moment, "LearningRate": LearningRate}
    if not _takes("adagrad", Grad, entry, {}):
        return NotImplemented
    _run("adagrad_rows", _merged(device, Grad), LearningRate, (Param, Moment), float(epsilon))
    return Param, Moment


def adam(
    device: CudaDevice, Param: Any, Grad: Any, LearningRate: Any, Moment1: Any, Moment2: Any, Beta1Pow: Any,
    Beta2Pow: Any, Beta1Tensor: Any, Beta2Tensor: Any, beta1: float, beta2: float, epsilon: float, lazy_mode: bool,
) -> Any:  # fmt: skip
    """Launcher of `adam` for SelectedRows: of the rows that are named, or with zeros for the others."""
    entry = {
        "Param": Param, "LearningRate": LearningRate, "Moment1": Moment1, "Moment2": Moment2, "Beta1Pow": Beta1Pow,
        "Beta2Pow": Beta2Pow, "Beta1Tensor": Beta1Tensor, "Beta2Tensor": Beta2Tensor,
    }  # fmt: skip
    attrs = {"beta1": beta1, "beta2": beta2, "epsilon": epsilon, "ahead": True}
    if not _takes("adam", Grad, entry, attrs) or (lazy_mode and not Grad.values.size):
        return NotImplemented
    grad = _merged(device, Grad)
    if lazy_mode:
        numbers = (float(beta1), 1.0 - beta1, float(beta2), 1.0 - beta2, float(epsilon))
        arrays = (Param, Moment1, Moment2, Beta1Pow, Beta2Pow)
        given = (Beta1Tensor, Beta2Tensor, tickets(device))
        _run("adam_rows", grad, LearningRate, arrays, *numbers, *given)
    else:
        table = device.xp.zeros_like(Param)
        size = grad.values.size
        sizes = (size, size // max(1, len(grad.rows)))
        macros = _macros(Param.dtype)
        launch.each(
            "rows", "spread_rows", Param.dtype, size, grad.rows, grad.values, table, *sizes, macros=macros
        )
        update(device, "adam", [{**entry, "Grad": table}], attrs)
    return Param, Moment1, Moment2, Beta1Pow, Beta2Pow
