"""Cells of recurrent networks, and `rnn`, which runs a cell over all steps of its inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .... import eager
from ....base import missing
from ....base.dtypes import VarType
from ....framework import Variable
from ..checks import check_dtype
from ..control_flow.static_rnn import StaticRNN
from ..sequence_lod import sequence_mask
from ..tensor.arithmetic import elementwise_mul
from ..tensor.constants import fill_constant_batch_size_like
from ..tensor.joining import reverse, stack
from ..tensor.shapes import shape, transpose
from ..utils import assert_same_structure, flatten, is_sequence, map_structure, pack_sequence_as

__all__ = ["GRUCell", "LSTMCell", "RNNCell", "rnn"]


class RNNCell:
    """One step of a recurrent network; the base class of cells (`fluid.layers.RNNCell`).

    Derive from it and define `call` and, unless initial states are always given, `state_shape`. States, inputs and
    outputs are tensors or lists, tuples and dicts of them.
    """

    def call(self, inputs: Any, states: Any, **kwargs: Any) -> tuple[Any, Any]:
        """Outputs and new states, which are built like `states`; subclasses define it."""
        raise NotImplementedError(f"{type(self).__name__} must define call(inputs, states, **kwargs)")

    def __call__(self, inputs: Any, states: Any, **kwargs: Any) -> tuple[Any, Any]:
        return self.call(inputs, states, **kwargs)

    def get_initial_states(
        self,
        batch_ref: Any,
        shape: Any = None,
        dtype: Any = "float32",
        init_value: float = 0,
        batch_dim_idx: int = 0,
    ) -> Any:
        """States that are `init_value` everywhere, one for each shape in `shape`, and built like it.

        Args:
            batch_ref: a tensor, or a structure whose first tensor it is, with the size of the batch in dimension
                `batch_dim_idx`.
            shape: a list of sizes, or lists, tuples and dicts of such lists, by default `state_shape`; the size of the
                batch is put in front of each that does not begin with -1.
            dtype: the element type of all states, or a structure of types.

        Raises:
            NotImplementedError: `shape` is None and the cell has no `state_shape`.
        """
        reference = flatten(batch_ref)[0]
        shapes = self.state_shape if shape is None else shape
        given = self.state_dtype if dtype is None else dtype

        def filled(sizes: list[int], kind: Any) -> Variable:
            sizes = sizes if sizes[:1] == [-1] else [-1, *sizes]
            return fill_constant_batch_size_like(
                reference, sizes, kind, init_value, input_dim_idx=batch_dim_idx
            )

        if not is_sequence(given):
            return _map_shapes(lambda sizes: filled(sizes, given), shapes)
        kinds = iter(flatten(given))
        return _map_shapes(lambda sizes: filled(sizes, next(kinds)), shapes)

    @property
    def state_shape(self) -> Any:
        """The shapes of the states without the batch, as `get_initial_states` takes them; subclasses define it."""
        raise NotImplementedError(
            f"{type(self).__name__} has no state_shape: define it, or give initial states"
        )

    @property
    def state_dtype(self) -> Any:
        """The element types of the states; asked for by `get_initial_states(dtype=None)`."""
        raise NotImplementedError(f"{type(self).__name__} has no state_dtype: define it, or give a dtype")


def _map_shapes(made: Callable[[list[int]], Any], shapes: Any) -> Any:
    """`made` of each list of sizes in `shapes`, in a structure like that of the lists."""
    if isinstance(shapes, dict):
        return {key: _map_shapes(made, value) for key, value in shapes.items()}
    if not is_sequence(shapes):
        return made([shapes])
    if not any(is_sequence(part) for part in shapes):
        return made(list(shapes))
    return type(shapes)(_map_shapes(made, part) for part in shapes)


class GRUCell(RNNCell):
    """A gated recurrent unit (`fluid.layers.GRUCell`), by `fluid.contrib.layers.BasicGRUUnit`.

    The state is [batch, hidden_size], and is the output, too. `name`: the prefix of the parameters' names; other
    arguments are those of `BasicGRUUnit`.
    """

    def __init__(
        self,
        hidden_size: int,
        param_attr: Any = None,
        bias_attr: Any = None,
        gate_activation: Callable[[Any], Any] | None = None,
        activation: Callable[[Any], Any] | None = None,
        dtype: Any = "float32",
        name: str = "GRUCell",
    ) -> None:
        self.hidden_size = hidden_size
        self.gru_unit = _unit("BasicGRUUnit")(
            name, hidden_size, param_attr, bias_attr, gate_activation, activation, dtype
        )

    def call(self, inputs: Any, states: Any) -> tuple[Any, Any]:  # type: ignore[override]
        """The new state, twice, from inputs [batch, size] and the state."""
        hidden = self.gru_unit(inputs, states)
        return hidden, hidden

    @property
    def state_shape(self) -> list[int]:
        return [self.hidden_size]


class LSTMCell(RNNCell):
    """A long short-term memory (`fluid.layers.LSTMCell`), by `fluid.contrib.layers.BasicLSTMUnit`.

    The states are a list of state and cell, [batch, hidden_size] both; the output is the state. `name`: what the names
    of parameters begin with; other arguments are those of `BasicLSTMUnit`.
    """

    def __init__(
        self,
        hidden_size: int,
        param_attr: Any = None,
        bias_attr: Any = None,
        gate_activation: Callable[[Any], Any] | None = None,
        activation: Callable[[Any], Any] | None = None,
        forget_bias: float = 1.0,
        dtype: Any = "float32",
        name: str = "LSTMCell",
    ) -> None:
        self.hidden_size = hidden_size
        self.lstm_unit = _unit("BasicLSTMUnit")(
            name, hidden_size, param_attr, bias_attr, gate_activation, activation, forget_bias, dtype
        )

    def call(self, inputs: Any, states: Any) -> tuple[Any, Any]:  # type: ignore[override]
        """The new state, and a list of it and the new cell, from inputs [batch, size] and such a list."""
        before, cell = states
        hidden, cell = self.lstm_unit(inputs, before, cell)
        return hidden, [hidden, cell]

    @property
    def state_shape(self) -> list[list[int]]:
        return [[self.hidden_size], [self.hidden_size]]


def _unit(name: str) -> Any:
    """A unit of `fluid.contrib`, whose layers are built on those of this package."""
    return missing.found_or_stand_in("fluid.contrib.layers.rnn_impl", name)


def rnn(
    cell: RNNCell,
    inputs: Any,
    initial_states: Any = None,
    sequence_length: Any = None,
    time_major: bool = False,
    is_reverse: bool = False,
    **kwargs: Any,
) -> tuple[Any, Any]:
    """Run `cell` over all steps of its inputs (`fluid.layers.rnn`). On eager tensors it computes at once.

    Args:
        inputs: a tensor [batch, time, ...], or a list or tuple of such.
        initial_states: the states before the first step; by default what `cell.get_initial_states` gives.
        sequence_length: integers [batch]: from this step on the states of a row stay as they are.
        time_major: inputs and outputs are [time, batch, ...].
        is_reverse: begin with the last step; with `sequence_length` padding comes first, then.
        kwargs: given to `cell.call`.

    Returns:
        The outputs, [batch, time, ...] each, and the states after the last step. Outputs beyond `sequence_length` are
        those of the cell.

    Raises:
        TypeError: for arguments of other types.
        ValueError: `cell.call` returns states of another structure.
    """
    for each in flatten(inputs):
        if not isinstance(each, Variable) and not eager.mixture([each]):
            raise TypeError(
                f"The type of 'inputs' in rnn must be a Variable, or a list or tuple of such, got {type(each).__name__}"
            )
    if sequence_length is not None:
        check_dtype(sequence_length, "sequence_length", "rnn", [VarType.INT32, VarType.INT64])
    if initial_states is None:
        initial_states = cell.get_initial_states(inputs, batch_dim_idx=1 if time_major else 0)
    if not time_major:
        inputs = map_structure(swapped, inputs)
    mask = None
    if sequence_length is not None:
        steps = shape(flatten(inputs)[0])[0]
        dtype = flatten(initial_states)[0].dtype
        mask = transpose(sequence_mask(sequence_length, maxlen=steps, dtype=dtype), [1, 0])
    if is_reverse:
        inputs = map_structure(lambda x: reverse(x, axis=[0]), inputs)
        mask = None if mask is None else reverse(mask, axis=[0])
    run = _run_eager if eager.mixture(flatten(inputs)) else _run_static
    outputs, states = run(cell, inputs, initial_states, mask, kwargs)
    if is_reverse:
        outputs = map_structure(lambda x: reverse(x, axis=[0]), outputs)
    if not time_major:
        outputs = map_structure(swapped, outputs)
    return outputs, states


def _run_static(
    cell: RNNCell, inputs: Any, initial_states: Any, mask: Any, kwargs: dict[str, Any]
) -> tuple[Any, Any]:
    """Outputs, time first, and last states of a `StaticRNN`."""
    for each in flatten(initial_states):
        each.stop_gradient = False  # in Fluid initial states always have a gradient
    network = StaticRNN()
    with network.step():
        now = map_structure(network.step_input, inputs)
        states = map_structure(network.memory, initial_states)
        outputs, after = cell.call(now, states, **kwargs)
        assert_same_structure(states, after)
        if mask is not None:
            going = network.step_input(mask)
            after = map_structure(lambda old, new: kept_where(new, old, going), states, after)
        map_structure(network.update_memory, states, after)
        flat = flatten(outputs)
        network.output(*flat, *flatten(after))
    made = network()
    made = made if isinstance(made, Sequence) else [made]
    last = [x[-1] for x in made[len(flat) :]]
    return pack_sequence_as(outputs, list(made[: len(flat)])), pack_sequence_as(after, last)


def _run_eager(
    cell: RNNCell, inputs: Any, initial_states: Any, mask: Any, kwargs: dict[str, Any]
) -> tuple[Any, Any]:
    states, outputs = initial_states, []
    for step in range(flatten(inputs)[0].shape[0]):
        now = map_structure(lambda x: x[step], inputs)  # noqa: B023 - used at once
        output, after = cell.call(now, states, **kwargs)
        assert_same_structure(states, after)
        if mask is not None:
            going = mask[step]
            after = map_structure(lambda old, new: kept_where(new, old, going), states, after)  # noqa: B023
        states = after
        outputs.append(output)
    return map_structure(lambda *steps: stack(list(steps), axis=0), *outputs), states


def swapped(x: Any) -> Any:
    """`x` with its first two dimensions swapped."""
    return transpose(x, [1, 0, *range(2, len(x.shape))])


def kept_where(one: Any, other: Any, mask: Any) -> Any:
    """Rows of `one` where `mask`, [rows], is 1, and of `other` where it is 0."""
    taken = elementwise_mul(one, mask, axis=0)
    return taken - elementwise_mul(other, mask - 1, axis=0)
