"""Single steps of recurrent networks, and lookahead over their rows: `gru_unit`, `lstm_unit`, `row_conv`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...base import callsite
from ...base.errors import ArgumentError
from ...framework import Variable
from ...layer_helper import LayerHelper, run_op
from ...ops.rnn.unit import ACTIVATIONS
from ..checks import check_choice, check_dtype, check_dtypes
from ..nn.dense import fc
from ..tensor.joining import concat

__all__ = ["gru_unit", "lstm_unit", "row_conv"]


def gru_unit(
    input: Variable,
    hidden: Variable,
    size: int,
    param_attr: Any = None,
    bias_attr: Any = None,
    activation: str = "tanh",
    gate_activation: str = "sigmoid",
    origin_mode: bool = False,
) -> tuple[Variable, Variable, Variable]:
    """One step of a gated recurrent unit (`fluid.layers.gru_unit`).

    Args:
        input: floats [batch, size], already multiplied by the input's weights: for update gate, reset gate and
            candidate side by side.
        hidden: the state before the step, [batch, size / 3].
        size: three times the size of the state.
        param_attr, bias_attr: a ParamAttr, a name or an initializer of weights [size / 3, size] and bias [1, size];
            `bias_attr=False`: no bias.
        activation, gate_activation: one of 'identity', 'sigmoid', 'tanh', 'relu'. As in Fluid 1.8, whose models rely
            on it, they have no effect (a UserWarning says so): 'tanh' and 'sigmoid' are used.
        origin_mode: the update gate is the share of the old state (Cho et al. 2014), not of the candidate.

    Returns:
        The state after the step, the old state after the reset gate, [batch, size / 3] both, and the gates with the
        candidate, [batch, size].

    Raises:
        TypeError, ValueError: for arguments that do not fit.
    """
    check_dtypes("gru_unit", input=input, hidden=hidden)
    gru_attrs("gru_unit", activation, gate_activation)
    if (activation, gate_activation) != ("tanh", "sigmoid"):
        callsite.warn(
            "gru_unit computes with tanh and sigmoid as Fluid 1.8 does, not with "
            f"{activation} and {gate_activation}"
        )
    helper = LayerHelper("gru_unit")
    parameters = create_gru_parameters(helper.create_parameter, size, param_attr, bias_attr, input.dtype)
    attrs = gru_attrs("gru_unit")
    return gru_step(helper, input, hidden, parameters, {**attrs, "origin_mode": origin_mode})


def gru_attrs(layer: str, activation: str = "tanh", gate_activation: str = "sigmoid") -> dict[str, Any]:
    """The attributes of a step of a gated recurrent unit; ValueError, naming `layer`, for other activations."""
    given = {"activation": activation, "gate_activation": gate_activation}
    for name, value in given.items():
        check_choice(value, name, ACTIVATIONS, layer)
    return {name: ACTIVATIONS.index(value) for name, value in given.items()}


def create_gru_parameters(
    create_parameter: Callable[..., Any], size: int, param_attr: Any, bias_attr: Any, dtype: Any
) -> tuple[Any, Any]:
    """Weights [size / 3, size] and bias [1, size], None for an attribute that is False."""
    width = size // 3
    weight = create_parameter(attr=param_attr, shape=[width, 3 * width], dtype=dtype)
    return weight, create_parameter(attr=bias_attr, shape=[1, 3 * width], dtype=dtype, is_bias=True)


def gru_step(
    helper: LayerHelper, input: Any, hidden: Any, parameters: tuple[Any, Any], attrs: dict[str, Any]
) -> tuple[Any, Any, Any]:
    """State, old state after the reset gate, gates with the candidate: see `gru_unit`."""
    weight, bias = parameters
    inputs = {"Input": input, "HiddenPrev": hidden, "Weight": weight, "Bias": bias}
    gate, reset, updated = helper.run("gru_unit", inputs, ("Gate", "ResetHiddenPrev", "Hidden"), attrs=attrs)
    return updated, reset, gate


def lstm_unit(
    x_t: Variable,
    hidden_t_prev: Variable,
    cell_t_prev: Variable,
    forget_bias: float = 0.0,
    param_attr: Any = None,
    bias_attr: Any = None,
    name: str | None = None,
) -> tuple[Variable, Variable]:
    """One step of a long short-term memory (`fluid.layers.lstm_unit`).

    Args:
        x_t: the input of the step, floats [batch, width].
        hidden_t_prev, cell_t_prev: the state and the cell before it, [batch, size] both.
        forget_bias: added to the forget gate before its sigmoid.
        param_attr, bias_attr: a ParamAttr, a name or an initializer of weights [width + size, 4 * size] and bias;
            `bias_attr=False`: no bias.

    Returns:
        State and cell after the step, [batch, size] both.

    Raises:
        TypeError, ValueError: for arguments that do not fit.
    """
    given = {"x_t": x_t, "hidden_t_prev": hidden_t_prev, "cell_t_prev": cell_t_prev}
    check_dtypes("lstm_unit", **given)
    for what, var in given.items():
        if len(var.shape) != 2:
            raise ArgumentError(f"'{what}' of lstm_unit must have 2 dimensions, got shape {list(var.shape)}")
    rows = {var.shape[0] for var in given.values()} - {-1}
    if len(rows) > 1 or hidden_t_prev.shape[1] != cell_t_prev.shape[1]:
        raise ArgumentError(
            "x_t, hidden_t_prev and cell_t_prev of lstm_unit must be [batch, width], [batch, size] and [batch, size], "
            f"got {list(x_t.shape)}, {list(hidden_t_prev.shape)} and {list(cell_t_prev.shape)}"
        )
    joined = concat([x_t, hidden_t_prev], axis=1)
    gates = fc(joined, 4 * cell_t_prev.shape[1], param_attr=param_attr, bias_attr=bias_attr)
    inputs = {"X": gates, "C_prev": cell_t_prev}
    cell, state = run_op("lstm_unit", inputs, ("C", "H"), attrs={"forget_bias": forget_bias}, name=name)
    return state, cell


def row_conv(
    input: Variable, future_context_size: int, param_attr: Any = None, act: str | None = None
) -> Variable:
    """Each row with the rows that follow it, weighed element by element (`fluid.layers.row_conv`).

    Args:
        input: floats [rows, width] with sequences, or padded [batch, time, width].
        future_context_size: how many following rows are considered; beyond the end they are zeros.
        param_attr: a ParamAttr, a name or an initializer of the weights [future_context_size + 1, width].
        act: the name of an activation.
    """
    check_dtype(input, "input", "row_conv")
    helper = LayerHelper("row_conv", param_attr=param_attr, act=act)
    shape = [future_context_size + 1, input.shape[-1]]
    weights = helper.create_parameter(attr=helper.param_attr, shape=shape, dtype=input.dtype)
    out = helper.run("row_conv", {"X": input, "Filter": weights})
    return helper.append_activation(out)
