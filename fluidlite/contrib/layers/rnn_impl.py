"""Recurrent units made of products and elementwise operators: `BasicGRUUnit`, `BasicLSTMUnit`."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from ... import layers
from ...base import missing
from ...dygraph import Layer
from ...param_attr import ParamAttr

__all__ = ["BasicGRUUnit", "BasicLSTMUnit"]


class BasicGRUUnit(Layer):
    """One step of a gated recurrent unit, Cho et al. 2014 (`fluid.contrib.layers.BasicGRUUnit`).

    Its parameters are made in the first call: weights of both gates, [input + hidden_size, 2 * hidden_size], and of the
    candidate, [input + hidden_size, hidden_size], with a bias each. Works in programs and on eager tensors.

    Args:
        name_scope: what the names of its parameters begin with.
        hidden_size: the size of the state.
        param_attr, bias_attr: a ParamAttr, a name or an initializer; a name gets `_gate` and `_candidate` at its end.
        gate_activation, activation: layers of one argument, by default `layers.sigmoid` and `layers.tanh`.
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
        dtype: Any = "float32",
    ) -> None:
        super().__init__(_full_scope(name_scope, self), dtype)
        self._hidden_size = hidden_size
        self._param_attr, self._bias_attr = param_attr, bias_attr
        self._gate_activation = gate_activation or layers.sigmoid
        self._activation = activation or layers.tanh

    def _build_once(self, input: Any, pre_hidden: Any) -> None:
        size = self._hidden_size
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


class BasicLSTMUnit(Layer):
    """One step of a long short-term memory without peepholes (`fluid.contrib.layers.BasicLSTMUnit`).

    Its parameters are made in the first call: a weight, [input + hidden_size, 4 * hidden_size], and a bias, for input
    gate, candidate, forget gate and output gate in this order. Works in programs and on eager tensors.

    Args:
        name_scope: what the names of its parameters begin with.
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
        super().__init__(_full_scope(name_scope, self), dtype)
        self._hidden_size = hidden_size
        self._param_attr, self._bias_attr = param_attr, bias_attr
        self._gate_activation = gate_activation or layers.sigmoid
        self._activation = activation or layers.tanh
        self._forget_bias = layers.fill_constant([1], dtype, forget_bias)
        self._forget_bias.stop_gradient = False

    def _build_once(self, input: Any, pre_hidden: Any, pre_cell: Any) -> None:
        size = self._hidden_size
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


def _full_scope(name_scope: str, unit: Layer) -> str:
    return f"{name_scope}/{type(unit).__name__}"


def _named_after(attr: Any, kind: str) -> Any:
    """A copy of `attr` whose name, if it has one, ends with what the parameter is for."""
    made = copy.deepcopy(ParamAttr._to_attr(attr))
    if isinstance(made, ParamAttr) and made.name is not None:
        made.name = f"{made.name}_{kind}"
    return made


__getattr__ = missing.reporter(__name__)
