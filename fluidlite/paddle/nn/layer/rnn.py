"""Recurrent layers: cells, and cells run over sequences, in one direction or both."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from ....fluid.dygraph.container import LayerList
from ....fluid.dygraph.layers import Layer
from ....fluid.initializer import UniformInitializer
from ....fluid.layers.checks import check_choice
from ...dtypes import get_default_dtype
from ...modes import constant, in_mode_of
from ...tensor.creation import full
from ...tensor.linalg import matmul
from ...tensor.manipulation import concat, reshape, split, stack, unbind, unstack
from .. import functional as F

__all__ = ["BiRNN", "GRU", "GRUCell", "LSTM", "LSTMCell", "RNN", "RNNCellBase", "SimpleRNN", "SimpleRNNCell"]


class RNNCellBase(Layer):
    """The base class of cells: `cell(inputs, states)` gives the output of a step and the new states
    (`paddle.nn.RNNCellBase`)."""

    def get_initial_states(
        self,
        batch_ref: Any,
        shape: Any = None,
        dtype: Any = None,
        init_value: float = 0.0,
        batch_dim_idx: int = 0,
    ) -> Any:
        """States filled with `init_value` for as many samples as `batch_ref` has along `batch_dim_idx`.

        `shape`: of the states without the batch, as `state_shape` by default; tuples of shapes give tuples.
        """
        shape = self.state_shape if shape is None else shape
        if isinstance(shape[0], (list, tuple)):
            return tuple(
                self.get_initial_states(batch_ref, one, dtype, init_value, batch_dim_idx) for one in shape
            )
        with in_mode_of(batch_ref):
            count = batch_ref.shape[batch_dim_idx]
            return full(
                [count, *[size for size in shape if size > 0]], init_value, dtype or get_default_dtype()
            )

    @property
    def state_shape(self) -> Any:
        """The shape of the states, without the batch."""
        raise NotImplementedError(f"{type(self).__name__} does not say the shape of its states")


class _Cell(RNNCellBase):
    """A cell with two matrices and two biases for each of its gates.

    Args:
        input_size: the size of the inputs of a step.
        hidden_size: that of the states.
        weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr: a ParamAttr, a name or an initializer of
            `weight_ih` [gates * hidden, input], `weight_hh` [gates * hidden, hidden], `bias_ih` and `bias_hh`
            [gates * hidden]; False for no bias. All are drawn evenly within 1 / sqrt(hidden_size).
        name: accepted.

    Raises:
        ValueError: `hidden_size` is not positive.
    """

    _gates: ClassVar[int]

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        weight_ih_attr: Any = None,
        weight_hh_attr: Any = None,
        bias_ih_attr: Any = None,
        bias_hh_attr: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        if hidden_size <= 0:
            raise ValueError(f"hidden_size of {type(self).__name__} must be positive, got {hidden_size}")
        self.input_size, self.hidden_size = input_size, hidden_size
        limit = 1.0 / math.sqrt(hidden_size)
        rows = self._gates * hidden_size

        def made(shape: list[int], attr: Any, is_bias: bool = False) -> Any:
            start = UniformInitializer(-limit, limit)
            return self.create_parameter(shape, attr, get_default_dtype(), is_bias, start)

        self.weight_ih = made([rows, input_size], weight_ih_attr)
        self.weight_hh = made([rows, hidden_size], weight_hh_attr)
        self.bias_ih = made([rows], bias_ih_attr, True)
        self.bias_hh = made([rows], bias_hh_attr, True)

    @property
    def state_shape(self) -> Any:
        return (self.hidden_size,)

    def _input_part(self, inputs: Any) -> Any:
        part = matmul(inputs, self.weight_ih, transpose_y=True)
        return part if self.bias_ih is None else part + self.bias_ih

    def _state_part(self, state: Any) -> Any:
        part = matmul(state, self.weight_hh, transpose_y=True)
        return part if self.bias_hh is None else part + self.bias_hh

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}"


class SimpleRNNCell(_Cell):
    __doc__ = f"""h = act(W_ih x + b_ih + W_hh h + b_hh) (`paddle.nn.SimpleRNNCell`).

    `activation`: 'tanh' or 'relu'. {_Cell.__doc__}"""
    _gates = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        activation: str = "tanh",
        weight_ih_attr: Any = None,
        weight_hh_attr: Any = None,
        bias_ih_attr: Any = None,
        bias_hh_attr: Any = None,
        name: str | None = None,
    ) -> None:
        check_choice(activation, "activation", ("tanh", "relu"), "SimpleRNNCell")
        super().__init__(input_size, hidden_size, weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr)
        self.activation = activation

    def forward(self, inputs: Any, states: Any = None) -> tuple[Any, Any]:
        """`inputs` is [N, input_size], `states` h [N, hidden_size], zeros by default; the result is (h, h)."""
        states = self.get_initial_states(inputs) if states is None else states
        total = self._input_part(inputs) + self._state_part(states)
        h = F.tanh(total) if self.activation == "tanh" else F.relu(total)
        return h, h


class LSTMCell(_Cell):
    __doc__ = f"""A step of long short-term memory (`paddle.nn.LSTMCell`): gates in, forget, cell, out.
    {_Cell.__doc__}"""
    _gates = 4

    def forward(self, inputs: Any, states: Any = None) -> tuple[Any, tuple[Any, Any]]:
        """`inputs` is [N, input_size], `states` (h, c), [N, hidden_size] each; the result is (h, (h, c))."""
        h, c = self.get_initial_states(inputs) if states is None else states
        enter, forget, cell, leave = split(self._input_part(inputs) + self._state_part(h), 4, -1)
        c = F.sigmoid(forget) * c + F.sigmoid(enter) * F.tanh(cell)
        h = F.sigmoid(leave) * F.tanh(c)
        return h, (h, c)

    @property
    def state_shape(self) -> Any:
        return ((self.hidden_size,), (self.hidden_size,))


class GRUCell(_Cell):
    __doc__ = f"""A step of a gated recurrent unit (`paddle.nn.GRUCell`): gates reset, update, candidate.
    {_Cell.__doc__}"""
    _gates = 3

    def forward(self, inputs: Any, states: Any = None) -> tuple[Any, Any]:
        """`inputs` is [N, input_size], `states` h [N, hidden_size], zeros by default; the result is (h, h)."""
        h = self.get_initial_states(inputs) if states is None else states
        x_reset, x_update, x_candidate = split(self._input_part(inputs), 3, -1)
        h_reset, h_update, h_candidate = split(self._state_part(h), 3, -1)
        update = F.sigmoid(x_update + h_update)
        candidate = F.tanh(x_candidate + F.sigmoid(x_reset + h_reset) * h_candidate)
        h = (h - candidate) * update + candidate
        return h, h


def _each(function: Callable[..., Any], *states: Any) -> Any:
    """`function` of states, or of each of the tensors in tuples of them."""
    if isinstance(states[0], (list, tuple)):
        return tuple(_each(function, *parts) for parts in zip(*states, strict=True))
    return function(*states)


class RNN(Layer):
    """Runs a cell over sequences (`paddle.nn.RNN`).

    Args:
        cell: called with the inputs and states of each step.
        is_reverse: from the last step to the first.
        time_major: steps come before samples: [T, N, ...] instead of [N, T, ...].
    """

    def __init__(self, cell: Any, is_reverse: bool = False, time_major: bool = False) -> None:
        super().__init__()
        self.cell, self.is_reverse, self.time_major = cell, is_reverse, time_major

    def forward(
        self, inputs: Any, initial_states: Any = None, sequence_length: Any = None, **kwargs: Any
    ) -> tuple[Any, Any]:
        """The outputs of all steps and the last states.

        `inputs` is [N, T, ...], `initial_states` as the cell takes them (None: zeros), `sequence_length` [N]: how many
        steps count; after them states stay and outputs are zero.
        """
        axis = 0 if self.time_major else 1
        steps = unstack(inputs, axis)
        states = self.cell.get_initial_states(steps[0]) if initial_states is None else initial_states
        outputs: list[Any] = [None] * len(steps)
        order = range(len(steps))
        for index in reversed(order) if self.is_reverse else order:
            output, moved = self.cell(steps[index], states, **kwargs)
            if sequence_length is not None:
                counts = constant(np.array([index]), sequence_length) < sequence_length
                share = reshape(counts.astype(output.dtype), [-1, 1])
                moved = _each(lambda new, old, s=share: new * s + old * (1.0 - s), moved, states)
                output = output * share
            outputs[index], states = output, moved
        return stack(outputs, axis), states


class BiRNN(Layer):
    """Runs two cells over sequences, one in each direction, and joins their outputs (`paddle.nn.BiRNN`).

    Args:
        cell_fw, cell_bw: the cells that go forward and backward.
        time_major: steps come before samples.
    """

    def __init__(self, cell_fw: Any, cell_bw: Any, time_major: bool = False) -> None:
        super().__init__()
        self.cell_fw, self.cell_bw, self.time_major = cell_fw, cell_bw, time_major
        self._forward = [RNN(cell_fw, False, time_major), RNN(cell_bw, True, time_major)]

    def forward(
        self, inputs: Any, initial_states: Any = None, sequence_length: Any = None, **kwargs: Any
    ) -> tuple[Any, tuple[Any, Any]]:
        """The outputs of both along the last axis, and a pair of last states; `initial_states` is such a pair."""
        both = (None, None) if initial_states is None else initial_states
        (forward, forward_state), (backward, backward_state) = (
            runner(inputs, state, sequence_length, **kwargs)
            for runner, state in zip(self._forward, both, strict=True)
        )
        return concat([forward, backward], -1), (forward_state, backward_state)


class _Recurrent(LayerList):
    """Layers of one kind of cell.

    Args:
        input_size: the size of the inputs of a step.
        hidden_size: that of the states.
        num_layers: how many layers, each on the outputs of the one before.
        direction: 'forward', or 'bidirect' ('bidirectional') for cells that go both ways.
        time_major: steps come before samples: [T, N, ...] instead of [N, T, ...].
        dropout: between layers, while training.
        weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr: as for the cells.
        name: accepted.
    """

    _cell: ClassVar[Callable[..., Any]]
    _parts: ClassVar[int] = 1
    """The number of tensors in a cell's state."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        direction: str = "forward",
        time_major: bool = False,
        dropout: float = 0.0,
        weight_ih_attr: Any = None,
        weight_hh_attr: Any = None,
        bias_ih_attr: Any = None,
        bias_hh_attr: Any = None,
        name: str | None = None,
        **more: Any,
    ) -> None:
        super().__init__()
        choices = ("forward", "bidirect", "bidirectional")
        check_choice(direction, "direction", choices, type(self).__name__)
        self.num_directions = 1 if direction == "forward" else 2
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.time_major, self.dropout = time_major, dropout
        attrs = {
            "weight_ih_attr": weight_ih_attr,
            "weight_hh_attr": weight_hh_attr,
            "bias_ih_attr": bias_ih_attr,
            "bias_hh_attr": bias_hh_attr,
            **more,
        }
        make = type(self)._cell
        size = input_size
        for _ in range(num_layers):
            if self.num_directions == 1:
                self.append(RNN(make(size, hidden_size, **attrs), False, time_major))
            else:
                cells = [make(size, hidden_size, **attrs) for _ in range(2)]
                self.append(BiRNN(cells[0], cells[1], time_major))
            size = hidden_size * self.num_directions
        self._name_parameters()

    def _name_parameters(self) -> None:
        """Give the cells' parameters the additional names of Paddle's state dicts besides `0.cell.weight_ih`:
        `weight_ih_l0`, and `weight_ih_l0_reverse` of the cell that goes backward."""
        for number, layer in enumerate(self):
            for cell, tail in zip(layer.children(), ("", "_reverse"), strict=False):
                for name, parameter in cell.named_parameters():
                    self.add_parameter(f"{name}_l{number}{tail}", parameter)

    def forward(
        self, inputs: Any, initial_states: Any = None, sequence_length: Any = None
    ) -> tuple[Any, Any]:
        """The outputs of all steps of the last layer, [N, T, directions * hidden], and the last states of all layers,
        [layers * directions, N, hidden] each; `initial_states` are like those."""
        states = self._split(initial_states)
        last = []
        for number, layer in enumerate(self):
            if number and self.dropout:
                inputs = F.dropout(inputs, self.dropout, training=self.training)
            start = states[number]
            inputs, state = layer(inputs, start, sequence_length)
            last += [state] if self.num_directions == 1 else list(state)
        if self._parts == 1:
            return inputs, stack(last, 0)
        return inputs, tuple(stack([state[part] for state in last], 0) for part in range(self._parts))

    def _split(self, states: Any) -> list[Any]:
        """The initial states of each layer."""
        if states is None:
            return [None] * self.num_layers
        parts = [unbind(part, 0) for part in (states if isinstance(states, (list, tuple)) else [states])]
        flat = [part[0] if self._parts == 1 else tuple(part) for part in zip(*parts, strict=True)]
        if self.num_directions == 1:
            return flat
        return list(zip(flat[::2], flat[1::2], strict=True))

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}, num_layers={self.num_layers}"


class SimpleRNN(_Recurrent):
    __doc__ = f"""Layers of `SimpleRNNCell` (`paddle.nn.SimpleRNN`).

    `activation`: 'tanh' or 'relu'. {_Recurrent.__doc__}"""
    _cell = SimpleRNNCell

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        direction: str = "forward",
        time_major: bool = False,
        dropout: float = 0.0,
        activation: str = "tanh",
        **attrs: Any,
    ) -> None:
        super().__init__(
            input_size,
            hidden_size,
            num_layers,
            direction,
            time_major,
            dropout,
            activation=activation,
            **attrs,
        )


class LSTM(_Recurrent):
    __doc__ = f"""Layers of `LSTMCell` (`paddle.nn.LSTM`); states are (h, c). {_Recurrent.__doc__}"""
    _cell, _parts = LSTMCell, 2


class GRU(_Recurrent):
    __doc__ = f"""Layers of `GRUCell` (`paddle.nn.GRU`). {_Recurrent.__doc__}"""
    _cell = GRUCell
