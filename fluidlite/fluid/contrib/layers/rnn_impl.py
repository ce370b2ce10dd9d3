"""Recurrent units made of products and elementwise operators, and networks of them over padded sequences."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from ....base.errors import StaticModeError
from ....framework import Variable, mode
from ... import layers
from ...dygraph import Layer
from ...param_attr import ParamAttr

__all__ = ["BasicGRUUnit", "BasicLSTMUnit", "basic_gru", "basic_lstm"]


class _Unit(Layer):
    """The common base of units, with the arguments of their constructors."""

    def __init__(
        self,
        name_scope: str,
        hidden_size: int,
        param_attr: Any = None,
        bias_attr: Any = None,
        gate_activation: Callable[[Any], Any] | None = None,
        activation: Callable[[Any], Any] | None = None,
        dtype: Any = "float32",
    ) -> None:
        super().__init__(f"{name_scope}/{type(self).__name__}", dtype)
        self._name, self._hiden_size = name_scope, hidden_size  # as subclasses know it from Fluid
        self._param_attr, self._bias_attr = param_attr, bias_attr
        self._gate_activation = gate_activation or layers.sigmoid
        self._activation = activation or layers.tanh


class BasicGRUUnit(_Unit):
    """One step of a gated recurrent unit, Cho et al. 2014 (`fluid.contrib.layers.BasicGRUUnit`).

    Its parameters are made in the first call: weights of both gates, [input + hidden_size, 2 * hidden_size], and of the
    candidate, [input + hidden_size, hidden_size], with a bias each. Works in programs and on eager tensors.

    Args:
        name_scope: the prefix of its parameters' names.
        hidden_size: the size of the state.
        param_attr, bias_attr: a ParamAttr, a name or an initializer; `_gate` or `_candidate` is appended to a name.
        gate_activation, activation: layers of one argument, by default `layers.sigmoid` and `layers.tanh`.
        dtype: 'float32' or 'float64'.
    """

    def _build_once(self, input: Any, pre_hidden: Any) -> None:
        size = self._hiden_size
        rows = input.shape[-1] + size
        for kind, columns in (("gate", 2 * size), ("candidate", size)):
            attr = _named_after(self._param_attr, kind)
            setattr(self, f"_{kind}_weight", self.create_parameter([rows, columns], attr, self._dtype))
        for kind, columns in (("gate", 2 * size), ("candidate", size)):
            attr = _named_after(self._bias_attr, kind)
            bias = self.create_parameter([columns], attr, self._dtype, is_bias=True)
            setattr(self, f"_{kind}_bias", bias)

    def forward(self, input: Any, pre_hidden: Any) -> Any:
        """The state after a step, [batch, hidden_size], from its input, [batch, input], and the state before it."""
        both = layers.concat([input, pre_hidden], 1)
        sums = layers.elementwise_add(layers.matmul(both, self._gate_weight), self._gate_bias)
        reset, update = layers.split(self._gate_activation(sums), num_or_sections=2, dim=1)
        both = layers.concat([input, reset * pre_hidden], 1)
        sums = layers.elementwise_add(layers.matmul(both, self._candidate_weight), self._candidate_bias)
        candidate = self._activation(sums)
        return update * pre_hidden + (1 - update) * candidate


class BasicLSTMUnit(_Unit):
    """One step of a long short-term memory without peepholes (`fluid.contrib.layers.BasicLSTMUnit`).

    Its parameters are made in the first call: a weight, [input + hidden_size, 4 * hidden_size], and a bias, for input
    gate, candidate, forget gate and output gate in this order. Works in programs and on eager tensors.

    Args:
        name_scope: the prefix of its parameters' names.
        hidden_size: the size of state and cell.
        param_attr, bias_attr: a ParamAttr, a name or an initializer.
        gate_activation, activation: kept and without effect, as in Fluid 1.8: sigmoid and tanh are used.
        forget_bias: added to the forget gate before its sigmoid.
        dtype: 'float32' or 'float64'.
    """

    def __init__(
        self,
        name_scope: str,
        hidden_size: int,
        param_attr: Any = None,
        bias_attr: Any = None,
        gate_activation: Callable[[Any], Any] | None = None,
        activation: Callable[[Any], Any] | None = None,
        forget_bias: float = 1.0,
        dtype: Any = "float32",
    ) -> None:
        super().__init__(name_scope, hidden_size, param_attr, bias_attr, gate_activation, activation, dtype)
        self._forget_bias = layers.fill_constant([1], dtype, forget_bias)
        self._forget_bias.stop_gradient = False

    def _build_once(self, input: Any, pre_hidden: Any, pre_cell: Any) -> None:
        size = self._hiden_size
        self._weight = self.create_parameter(
            [input.shape[-1] + size, 4 * size], self._param_attr, self._dtype
        )
        self._bias = self.create_parameter([4 * size], self._bias_attr, self._dtype, is_bias=True)

    def forward(self, input: Any, pre_hidden: Any, pre_cell: Any) -> tuple[Any, Any]:
        """State and cell after a step, [batch, hidden_size] both, from its input and both before it."""
        both = layers.concat([input, pre_hidden], 1)
        sums = layers.elementwise_add(layers.matmul(both, self._weight), self._bias)
        write, candidate, forget, read = layers.split(sums, num_or_sections=4, dim=-1)
        kept = layers.sigmoid(layers.elementwise_add(forget, self._forget_bias))
        kept = layers.elementwise_mul(pre_cell, kept)
        written = layers.elementwise_mul(layers.sigmoid(write), layers.tanh(candidate))
        cell = layers.elementwise_add(kept, written)
        return layers.tanh(cell) * layers.sigmoid(read), cell


def basic_gru(
    input: Variable,
    init_hidden: Variable | None,
    hidden_size: int,
    num_layers: int = 1,
    sequence_length: Variable | None = None,
    dropout_prob: float = 0.0,
    bidirectional: bool = False,
    batch_first: bool = True,
    param_attr: Any = None,
    bias_attr: Any = None,
    gate_activation: Callable[[Any], Any] | None = None,
    activation: Callable[[Any], Any] | None = None,
    dtype: Any = "float32",
    name: str = "basic_gru",
) -> tuple[Variable, Variable]:
    """Layers of `BasicGRUUnit` over padded sequences (`fluid.contrib.layers.basic_gru`), for programs.

    Args:
        input: floats [batch, time, width], or [time, batch, width] without `batch_first`.
        init_hidden: states before the first step, [num_layers * directions, batch, hidden_size]; None: zeros.
        hidden_size, gate_activation, activation, dtype: as for `BasicGRUUnit`.
        num_layers: the number of stacked units.
        sequence_length: integers [batch]: later steps keep the states; None: all sequences have full length.
        dropout_prob: the probability of (upscaled) dropout of each unit's outputs in training.
        bidirectional: True for a second network in reverse order; it keeps its initial states in the padding.
        param_attr, bias_attr: a ParamAttr or None. Its name gets `_fw_w_0`, `_bw_b_1`, ... and the unit's suffix.
        name: the prefix of the units' names.

    Returns:
        The states of the last layer, [batch, time, directions * hidden_size] (or time first), and the last states,
        [num_layers * directions, batch, hidden_size].

    Raises:
        AssertionError: in dygraph mode.
    """

    def unit(scope: str, weights: Any, bias: Any) -> Layer:
        return BasicGRUUnit(scope, hidden_size, weights, bias, gate_activation, activation, dtype)

    network = _Network(
        num_layers, bidirectional, hidden_size, dropout_prob, dtype, param_attr, bias_attr, name
    )
    out, last = network.over(unit, input, [init_hidden], sequence_length, batch_first)
    return out, last[0]


def basic_lstm(
    input: Variable,
    init_hidden: Variable | None,
    init_cell: Variable | None,
    hidden_size: int,
    num_layers: int = 1,
    sequence_length: Variable | None = None,
    dropout_prob: float = 0.0,
    bidirectional: bool = False,
    batch_first: bool = True,
    param_attr: Any = None,
    bias_attr: Any = None,
    gate_activation: Callable[[Any], Any] | None = None,
    activation: Callable[[Any], Any] | None = None,
    forget_bias: float = 1.0,
    dtype: Any = "float32",
    name: str = "basic_lstm",
) -> tuple[Variable, Variable, Variable]:
    """Layers of `BasicLSTMUnit` over padded sequences (`fluid.contrib.layers.basic_lstm`), for programs.

    Args:
        input, num_layers, sequence_length, dropout_prob, bidirectional, batch_first, param_attr, bias_attr, name: as
            for `basic_gru`. As in Fluid, the bias of the backward network takes `param_attr`, with its name, if
            `bias_attr` has no name.
        init_hidden, init_cell: states and cells before the first step, [num_layers * directions, batch,
            hidden_size]; None: zeros. Cells without states are ignored.
        hidden_size, gate_activation, activation, forget_bias, dtype: as for `BasicLSTMUnit`.

    Returns:
        The states of the last layer, [batch, time, directions * hidden_size] (or time first), and the last states and
        cells, [num_layers * directions, batch, hidden_size] both.

    Raises:
        AssertionError: in dygraph mode.
        TypeError: for states without cells.
    """

    def unit(scope: str, weights: Any, bias: Any) -> Layer:
        acts = gate_activation, activation
        return BasicLSTMUnit(scope, hidden_size, weights, bias, *acts, forget_bias, dtype)

    lent = None if _name_of(bias_attr) is not None else param_attr
    network = _Network(
        num_layers, bidirectional, hidden_size, dropout_prob, dtype, param_attr, bias_attr, name, lent
    )
    out, last = network.over(unit, input, [init_hidden, init_cell], sequence_length, batch_first)
    return out, last[0], last[1]


class _Network:
    """Stacked units in one or both directions; `lent`: the attribute of backward biases in place of `bias_attr`."""

    def __init__(
        self,
        num_layers: int,
        bidirectional: bool,
        hidden_size: int,
        dropout_prob: float,
        dtype: Any,
        param_attr: Any,
        bias_attr: Any,
        name: str,
        lent: Any = None,
    ) -> None:
        if mode.in_dygraph_mode():
            raise StaticModeError(
                f"{name} is a layer of programs only; in dygraph mode call its unit in a loop"
            )
        self.num_layers, self.hidden_size = num_layers, hidden_size
        self.directions = ("fw", "bw") if bidirectional else ("fw",)
        self.dropout_prob, self.dtype = dropout_prob, dtype
        self.param_attr, self.bias_attr, self.name, self.lent = param_attr, bias_attr, name, lent

    def over(
        self,
        unit: Callable[[str, Any, Any], Layer],
        input: Variable,
        initial: list[Any],
        lengths: Variable | None,
        batch_first: bool,
    ) -> tuple[Variable, list[Variable]]:
        """The outputs of all steps, and the final states; `initial`: the initial states (h or h, c), or [None]."""
        units = {way: [self._unit(unit, way, k) for k in range(self.num_layers)] for way in self.directions}
        rows = layers.transpose(input, [1, 0, 2]) if batch_first else input
        mask = None
        if lengths is not None:
            mask = layers.sequence_mask(lengths, maxlen=layers.shape(rows)[0], dtype=self.dtype)
            mask = layers.transpose(mask, [1, 0])
        shape = [self.num_layers, len(self.directions), -1, self.hidden_size]
        first = None if initial[0] is None else [layers.reshape(state, shape=shape) for state in initial]
        out, last = self._direction(units["fw"], rows, mask, first, 0, len(initial))
        if len(self.directions) == 2:
            back = layers.reverse(rows, axis=[0])
            mask = None if mask is None else layers.reverse(mask, axis=[0])
            back_out, back_last = self._direction(units["bw"], back, mask, first, 1, len(initial))
            out = layers.concat([out, layers.reverse(back_out, axis=[0])], axis=2)
            joined = []
            for pair in zip(last, back_last, strict=True):
                both = layers.concat(list(pair), axis=1)
                joined.append(layers.reshape(both, shape=[2 * self.num_layers, -1, self.hidden_size]))
            last = joined
        return (layers.transpose(out, [1, 0, 2]) if batch_first else out), last

    def _unit(self, unit: Callable[[str, Any, Any], Layer], way: str, k: int) -> Layer:
        scope = f"{self.name}{'_reverse' if way == 'bw' else ''}_layers_{k}"
        weights, bias = (
            _named_after(self.param_attr, f"{way}_w_{k}"),
            _named_after(self.bias_attr, f"{way}_b_{k}"),
        )
        if way == "bw" and self.lent is not None:
            bias = copy.deepcopy(self.lent)
        return unit(scope, weights, bias)

    def _direction(
        self,
        units: list[Layer],
        rows: Variable,
        mask: Variable | None,
        first: list[Variable] | None,
        way: int,
        kinds: int,
    ) -> tuple[Variable, list[Variable]]:
        starts = (
            None if first is None else [[state[k, way] for state in first] for k in range(self.num_layers)]
        )
        rnn = layers.StaticRNN()
        with rnn.step():
            step_input = rnn.step_input(rows)
            still = None if mask is None else rnn.step_input(mask)
            for k, unit in enumerate(units):
                if starts is None:
                    before = [rnn.memory(batch_ref=rows, shape=[-1, self.hidden_size]) for _ in range(kinds)]
                else:
                    before = [rnn.memory(init=state) for state in starts[k]]
                result = unit(step_input, *before)
                after = list(result) if isinstance(result, tuple) else [result]
                if still is not None:
                    after = [_while_running(new, old, still) for new, old in zip(after, before, strict=True)]
                for old, new in zip(before, after, strict=True):
                    rnn.update_memory(old, new)
                for new in after:
                    rnn.step_output(new)
                step_input = after[0]
                if self.dropout_prob:
                    step_input = layers.dropout(
                        step_input, dropout_prob=self.dropout_prob, dropout_implementation="upscale_in_train"
                    )
            rnn.step_output(step_input)
        *states, out = rnn()
        ends = [state[-1] for state in states]
        last = []
        for kind in range(kinds):
            joined = layers.concat(ends[kind::kinds], axis=0)
            last.append(layers.reshape(joined, shape=[self.num_layers, -1, self.hidden_size]))
        return out, last


def _while_running(new: Variable, old: Variable, still: Variable) -> Variable:
    """`new` where a sequence has not ended (`still` is 1), else `old`."""
    kept = layers.elementwise_mul(new, still, axis=0)
    return kept - layers.elementwise_mul(old, still - 1, axis=0)


def _name_of(attr: Any) -> str | None:
    param_attr = ParamAttr._to_attr(attr)
    return param_attr.name if isinstance(param_attr, ParamAttr) else None


def _named_after(attr: Any, kind: str) -> Any:
    """A copy of `attr` with `_kind` appended to its name, if it has one."""
    named = copy.deepcopy(ParamAttr._to_attr(attr))
    if isinstance(named, ParamAttr) and named.name is not None:
        named.name = f"{named.name}_{kind}"
    return named
