"""Kernels of updates of parameters, dense and by rows."""

from __future__ import annotations

from .kernel_def import declare

_POWERS = "Beta1Pow Beta2Pow"


def _updates(name: str, state: str, read: str = "Param Grad", ints: str = "", floats: str = "") -> None:
    """An update in place of the parameter and the accumulators `state`, of many parameters at once."""
    operands = f"LearningRate ({read}{' ' if state else ''}{state})*"
    declare(name, operands, f"Param {state}", ints=f"{ints} n*", floats=floats, multi_tensor=True)


_updates("sgd", "")
_updates("momentum", "Velocity", ints="use_nesterov", floats="mu")
_updates("adam", f"Moment1 Moment2 {_POWERS}", floats="beta1 beta2 epsilon")
_updates("adagrad", "Moment", floats="epsilon")
_updates("rmsprop", "Moment MeanSquare MeanGrad", ints="centered", floats="decay momentum epsilon")
declare(
    "average_accumulates",
    "Param Sum1 Sum2 Sum3 NumAccumulates OldNumAccumulates NumUpdates",
    "Sum1 Sum2 Sum3 NumAccumulates OldNumAccumulates NumUpdates",
    ints="n min_window max_window steps_in_a_sum",
    floats="window_rate",
)
_ROWS = "LearningRate Param Rows Values"
declare("sgd_rows", _ROWS, "Param", ints="n height width")
declare("adagrad_rows", f"{_ROWS} Moment", "Param Moment", ints="n height width", floats="epsilon")
declare(
    "adam_rows",
    f"{_ROWS} Moment1 Moment2 {_POWERS}",
    f"Param Moment1 Moment2 {_POWERS}",
    ints="n height width lazy",
    floats="beta1 beta2 epsilon",
)
