"""Recurrent layers over sequences, and single steps of them: `dynamic_lstm`, `dynamic_gru`, `lstm_unit`, `gru_unit`,
`row_conv`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....base import callsite
from ....base.dtypes import VarType
from ....base.errors import ArgumentAssertion, ArgumentError, StaticModeError
from ....framework import Variable, default_main_program, mode
from ....ops.rnn.unit import ACTIVATIONS
from ...layer_helper import LayerHelper, run_op
from ...op_functions import run_layer
from ..checks import check_choice, check_dtype, check_dtypes
from ..nn.dense import fc
from ..tensor.joining import concat

__all__ = ["dynamic_gru", "dynamic_lstm", "dynamic_lstmp", "gru_unit", "lstm", "lstm_unit", "row_conv"]

_PARAMETERS = (
    "size", "width", "shape", "dtype", "param_attr", "bias_attr", "helper", "outs",
    "default_initializer", "ways", "widths",
)  # fmt: skip
"""Arguments that describe parameters, and are not attributes of the operators."""


def dynamic_lstm(
    input: Variable,
    size: int,
    h_0: Variable | None = None,
    c_0: Variable | None = None,
    param_attr: Any = None,
    bias_attr: Any = None,
    use_peepholes: bool = True,
    is_reverse: bool = False,
    gate_activation: str = "sigmoid",
    cell_activation: str = "tanh",
    candidate_activation: str = "tanh",
    dtype: Any = "float32",
    name: str | None = None,
) -> tuple[Variable, Variable]:
    """A long short-term memory over each sequence of `input` (`fluid.layers.dynamic_lstm`; Hochreiter and Schmidhuber
    1997, peepholes as in Gers, Schraudolph and Schmidhuber 2002).

    With c' the cell and h' the state before a step, the gates i, f, o and the candidate g, `*` element by element:

        g = candidate_activation(x_g + h' W_g)
        i = gate_activation(x_i + h' W_i + c' * w_i)
        f = gate_activation(x_f + h' W_f + c' * w_f)
        c = g * i + c' * f
        o = gate_activation(x_o + h' W_o + c * w_o)
        h = o * cell_activation(c)

    Args:
        input: floats [rows, size] with one level of sequences, already multiplied by the input's weights: x_g, x_i,
            x_f and x_o side by side (a bias is added to them).
        size: four times the size of the state.
        h_0, c_0: state and cell before the first step, a row for each sequence, [batch, size / 4]; both or neither
            (zeros).
        param_attr: a ParamAttr, a name or an initializer of the weights [size / 4, size]: W_g, W_i, W_f, W_o.
        bias_attr: the same of the bias [1, size], followed by w_i, w_f and w_o with peepholes: [1, 7 * size / 4].
        use_peepholes: whether gates look at the cell.
        is_reverse: start from the end of each sequence.
        gate_activation, cell_activation, candidate_activation: 'sigmoid', 'tanh', 'relu' or 'identity'.
        dtype: of the parameters, which must be that of `input`.

    Returns:
        States and cells of all steps, [rows, size / 4] both, with the sequences of `input`. As in Fluid no gradient
        goes through the cells.

    Raises:
        AssertionError: in dygraph mode, without a bias, or for initial states that do not fit.
        TypeError, EnforceNotMet: for other arguments that do not fit.
    """
    _check(input, bias_attr, "dynamic_lstm")
    helper = LayerHelper("lstm", name=name, param_attr=param_attr, bias_attr=bias_attr)
    width = size // 4
    weight = helper.create_parameter(attr=helper.param_attr, shape=[width, 4 * width], dtype=dtype)
    bias = _bias(helper, width, use_peepholes, dtype)
    _check_states(input, width, h_0=h_0, c_0=c_0)
    outs = ("Hidden", "Cell", "BatchGate", "BatchCellPreAct")
    hidden, cell, *_ = run_layer("lstm", locals(), outs, without=_PARAMETERS, helper=helper)
    return hidden, cell


def dynamic_lstmp(
    input: Variable,
    size: int,
    proj_size: int,
    param_attr: Any = None,
    bias_attr: Any = None,
    use_peepholes: bool = True,
    is_reverse: bool = False,
    gate_activation: str = "sigmoid",
    cell_activation: str = "tanh",
    candidate_activation: str = "tanh",
    proj_activation: str = "tanh",
    dtype: Any = "float32",
    name: str | None = None,
    h_0: Variable | None = None,
    c_0: Variable | None = None,
    cell_clip: float | None = None,
    proj_clip: float | None = None,
) -> tuple[Variable, Variable]:
    """A long short-term memory with a projected hidden state (`fluid.layers.dynamic_lstmp`; Sak,
    Senior and Beaufays 2014): `dynamic_lstm` with a further step, r = activation(h W_r), where r takes the place of h
    in the next step. As in Fluid 1.8 the activation is `cell_activation`, or none if `proj_activation` is 'identity'.

    Args:
        input, size, use_peepholes, is_reverse, dtype, c_0: as for `dynamic_lstm`.
        proj_size: the size of the state, r.
        param_attr: a ParamAttr or an initializer of the weights [proj_size, size], and of W_r [size / 4, proj_size].
        bias_attr: as for `dynamic_lstm`.
        gate_activation, cell_activation, candidate_activation, proj_activation: 'sigmoid', 'tanh', 'relu' or
            'identity'.
        h_0: the projected state before the first step, [batch, proj_size].
        cell_clip, proj_clip: bounds of cell and state, which are cut off beyond; None: no bound.

    Returns:
        Projected states [rows, proj_size] and cells [rows, size / 4] of all steps, with the sequences of `input`. As in
        Fluid no gradient goes through the cells.

    Raises:
        AssertionError: in dygraph mode, without a bias, or for a negative bound.
        TypeError, EnforceNotMet: for other arguments that do not fit.
    """
    _check(input, bias_attr, "dynamic_lstmp")
    helper = LayerHelper("lstmp", name=name, param_attr=param_attr, bias_attr=bias_attr)
    width = size // 4
    weight = helper.create_parameter(attr=helper.param_attr, shape=[proj_size, 4 * width], dtype=dtype)
    projection = helper.create_parameter(attr=helper.param_attr, shape=[width, proj_size], dtype=dtype)
    bias = _bias(helper, width, use_peepholes, dtype)
    for bound, what in ((cell_clip, "cell_clip"), (proj_clip, "proj_clip")):
        if bound is not None and bound < 0:
            raise ArgumentAssertion(f"'{what}' of dynamic_lstmp must not be negative, got {bound}")
    outs = ("Projection", "Cell", "unused", "BatchHidden", "BatchGate", "BatchCellPreAct")
    made = {slot: helper.create_variable_for_type_inference(dtype) for slot in outs}
    del made["unused"]  # no operator writes it, but in Fluid it takes a number of the unique names
    state, cell, *_ = run_layer(
        "lstmp",
        locals(),
        tuple(made),
        without=(*_PARAMETERS, "proj_size", "bound", "what", "made"),
        helper=helper,
        into=made,
        ProjWeight="projection",
    )
    return state, cell


def dynamic_gru(
    input: Variable,
    size: int,
    param_attr: Any = None,
    bias_attr: Any = None,
    is_reverse: bool = False,
    gate_activation: str = "sigmoid",
    candidate_activation: str = "tanh",
    h_0: Variable | None = None,
    origin_mode: bool = False,
) -> Variable:
    """A gated recurrent unit over each sequence of `input` (`fluid.layers.dynamic_gru`; Chung et al. 2014).

    With h' the state before a step, update gate u, reset gate r and candidate g, `*` element by element:

        u = gate_activation(x_u + h' W_u)
        r = gate_activation(x_r + h' W_r)
        g = candidate_activation(x_g + (r * h') W_g)
        h = (1 - u) * h' + u * g

    Args:
        input: floats [rows, 3 * size] with one level of sequences, already multiplied by the input's weights: x_u, x_r
            and x_g side by side (a bias is added to them).
        size: the size of the state.
        param_attr: a ParamAttr, a name or an initializer of the weights [size, 3 * size]; in memory W_u and W_r side
            by side [size, 2 * size], followed by W_g [size, size].
        bias_attr: the same of the bias [1, 3 * size]; False: no bias.
        is_reverse: start from the end of each sequence.
        gate_activation, candidate_activation: 'sigmoid', 'tanh', 'relu' or 'identity'.
        h_0: the state before the first step, a row for each sequence, [batch, size]; None: zeros.
        origin_mode: h = u * h' + (1 - u) * g instead (Cho et al. 2014).

    Returns:
        The states of all steps, [rows, size], with the sequences of `input`.

    Raises:
        AssertionError: in dygraph mode, or for an h_0 that does not fit.
        TypeError, EnforceNotMet: for other arguments that do not fit.
    """
    _check(input, None, "dynamic_gru")
    helper = LayerHelper("gru", param_attr=param_attr, bias_attr=bias_attr)
    shape, dtype = [size, 3 * size], input.dtype
    weight = helper.create_parameter(attr=helper.param_attr, shape=shape, dtype=dtype)
    bias = None
    if helper.bias_attr:
        shape = [1, 3 * size]
        bias = helper.create_parameter(attr=helper.bias_attr, shape=shape, dtype=dtype, is_bias=True)
    _check_states(input, size, h_0=h_0)
    outs = ("Hidden", "BatchGate", "BatchResetHiddenPrev", "BatchHidden")
    hidden: Variable = run_layer(
        "gru", locals(), outs, without=_PARAMETERS, helper=helper, activation="candidate_activation"
    )[0]
    return hidden


def lstm(
    input: Variable,
    init_h: Variable,
    init_c: Variable,
    max_len: int,
    hidden_size: int,
    num_layers: int,
    dropout_prob: float = 0.0,
    is_bidirec: bool = False,
    is_test: bool = False,
    name: str | None = None,
    default_initializer: Any = None,
    seed: int = -1,
) -> tuple[Variable, Variable, Variable]:
    """Layers of long short-term memories without peepholes over a padded batch (`fluid.layers.lstm`).

    Args:
        input: floats [time, batch, width].
        init_h, init_c: states and cells before the first step, [num_layers * directions, batch, hidden_size] both, both
            directions of the first layer before those of the second.
        max_len: accepted and without effect.
        hidden_size: the size of the state of each layer and direction.
        num_layers: how many layers stand above each other.
        dropout_prob: how much of what a layer gives to the next one is dropped in training, upscaled.
        is_bidirec: each layer goes over the batch in both directions.
        is_test: drop nothing. As in Fluid it is set in a program cloned for testing.
        default_initializer: of the only parameter, the flat weights of all layers, by default Xavier. As for cuDNN they
            are, layer by layer and forwards before backwards, the matrices of input [4 * hidden_size, width] and state
            [4 * hidden_size, hidden_size], of input, forget, candidate and output gate; then two biases each.
        seed: of dropout.

    Returns:
        The states of the last layer, [time, batch, directions * hidden_size], and the last states and cells of all
        layers, of the shape of `init_h`.

    Raises:
        TypeError, EnforceNotMet: for arguments that do not fit.
    """
    check_dtype(input, "input", "lstm")
    helper = LayerHelper("cudnn_lstm", name=name)
    input_size, ways = input.shape[-1], 2 if is_bidirec else 1
    widths = [input_size] * ways + [hidden_size * ways] * (ways * (num_layers - 1))
    w = helper.create_parameter(
        attr=helper.param_attr,
        shape=[sum(4 * hidden_size * (width + hidden_size + 2) for width in widths)],
        dtype=input.dtype,
        default_initializer=default_initializer,
    )
    cache, outs = _cache(), ("Out", "last_h", "last_c")
    return run_layer("cudnn_lstm", locals(), outs, without=_PARAMETERS, helper=helper)


def _cache() -> Variable | None:
    """The cuDNN state of Fluid's operator, a variable of the program; unused here."""
    if mode.in_dygraph_mode():
        return None
    block = default_main_program().current_block()
    made: Variable = block.create_var(
        name=block._new_name("_generated_var"), type=VarType.RAW, persistable=True
    )
    made.stop_gradient = True
    return made


def _check(input: Variable, bias_attr: Any, layer: str) -> None:
    """The checks of arguments that the layers of this file share."""
    if mode.in_dygraph_mode():
        raise StaticModeError(f"{layer} is a layer of programs only; in dygraph mode loop over the steps")
    if bias_attr is False:
        raise ArgumentAssertion(f"'bias_attr' of {layer} must not be False")
    check_dtype(input, "input", layer)


def _bias(helper: LayerHelper, width: int, use_peepholes: bool, dtype: Any) -> Variable:
    shape = [1, (7 if use_peepholes else 4) * width]
    return helper.create_parameter(attr=helper.bias_attr, shape=shape, dtype=dtype, is_bias=True)


def _check_states(input: Variable, width: int, **states: Variable | None) -> None:
    """Raise AssertionError unless initial states are as Fluid's: with the open first dimension of `input`."""
    for name, state in states.items():
        if state is not None and tuple(state.shape) != (input.shape[0], width):
            raise ArgumentAssertion(
                f"'{name}' must be of shape {[input.shape[0], width]} (batch size, size), got {list(state.shape)}"
            )


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
