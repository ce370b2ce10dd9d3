"""Recurrent layers: cells run over sequences, in one direction or both, one layer on another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from ....dygraph.container import LayerList
from ....dygraph.layers import Layer
from ....layers.checks import check_choice
from ...run_mode import constant
from ...tensor.manipulation import concat, reshape, stack, unbind, unstack
from .. import functional as F
from .rnn_cell import GRUCell, LSTMCell, SimpleRNNCell

__all__ = ["BiRNN", "GRU", "LSTM", "RNN", "SimpleRNN"]


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
