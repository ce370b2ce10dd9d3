"""Steps of recurrent networks."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from ....dygraph.layers import Layer
from ....initializer import UniformInitializer
from ....layers.checks import check_choice
from ...dtypes import get_default_dtype
from ...run_mode import in_mode_of
from ...tensor.creation import full
from ...tensor.linalg import matmul
from ...tensor.manipulation import split
from .. import functional as F

__all__ = ["GRUCell", "LSTMCell", "RNNCellBase", "SimpleRNNCell"]


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
