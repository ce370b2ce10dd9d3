"""The step of a decoder and its states: `InitState`, `StateCell`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ....base.dtypes import VarType
from ....base.errors import ArgumentError
from ....framework import Block, Variable
from ... import layers
from ...layer_helper import LayerHelper
from ...layers.control_flow.conditional_block import from_outside

__all__ = ["InitState", "StateCell"]


class InitState:
    """The initial value of a state (`fluid.contrib.decoder.InitState`).

    Args:
        init: a variable with the value.
        shape, value, dtype, init_boot: without `init`, a constant of this shape, with the first size of `init_boot`.
        need_reorder: True if rows have to be reordered for training, which sorts sequences by length.

    Raises:
        ValueError: neither `init` nor `init_boot` is given.
    """

    def __init__(
        self,
        init: Variable | None = None,
        shape: Any = None,
        value: float = 0.0,
        init_boot: Variable | None = None,
        need_reorder: bool = False,
        dtype: Any = "float32",
    ) -> None:
        if init is None:
            if init_boot is None:
                raise ArgumentError("init_boot must be provided to infer the shape of InitState .")
            init = layers.fill_constant_batch_size_like(init_boot, value=value, shape=shape, dtype=dtype)
        self._init, self._need_reorder = init, need_reorder

    @property
    def value(self) -> Variable:
        """The variable with the value."""
        return self._init

    @property
    def need_reorder(self) -> bool:
        """True if rows have to be reordered for training, which sorts sequences by length."""
        return self._need_reorder


class _MemoryState:
    """A state that a DynamicRNN carries from step to step."""

    def __init__(self, rnn: Any, init: InitState) -> None:
        self._rnn = rnn
        self._memory = rnn.memory(init=init.value, need_reorder=init.need_reorder)

    def get_state(self) -> Variable:
        memory: Variable = self._memory
        return memory

    def update_state(self, state: Variable) -> None:
        self._rnn.update_memory(self._memory, state)


class _ArrayState:
    """A state that a loop keeps for each step, in an array."""

    def __init__(self, parent: Block, init: InitState) -> None:
        self._counter = parent.create_var(
            name=parent._new_name("array_state_counter"), shape=[1], dtype="int64"
        )
        self._array = parent.create_var(
            name=parent._new_name("array_state_array"),
            type=VarType.LOD_TENSOR_ARRAY,
            dtype=init.value.dtype,
        )
        append_zero(parent, self._counter)
        append_write(parent, init.value, self._counter, self._array)

    def get_state(self) -> Variable:
        state: Variable = layers.array_read(self._array, self._counter)
        return state

    def update_state(self, state: Variable) -> None:
        layers.increment(self._counter)
        layers.array_write(state, self._counter, self._array)


def append_zero(block: Block, counter: Variable) -> None:
    """Append to `block` an operator that sets `counter` to 0."""
    attrs = {"shape": [1], "value": 0.0, "dtype": int(counter.dtype), "force_cpu": True}
    block.append_op(type="fill_constant", outputs={"Out": [counter]}, attrs=attrs)


def append_write(block: Block, value: Variable, counter: Variable, array: Any) -> None:
    """Append to `block`, a parent of the current one, an operator that writes `value` to `array[counter]`."""
    from_outside(block, value)
    block.append_op(type="write_to_array", inputs={"X": [value], "I": [counter]}, outputs={"Out": [array]})


class StateCell:
    """A step of a decoder: from its inputs and states, new states (`fluid.contrib.decoder.StateCell`).

        cell = StateCell(inputs={'x': None}, states={'h': InitState(init=context)}, out_state='h')

        @cell.state_updater
        def update(cell):
            word, before = cell.get_input('x'), cell.get_state('h')
            cell.set_state('h', layers.fc([before, word], size, act='tanh'))

    It works inside of one `TrainingDecoder` or `BeamSearchDecoder` at a time.

    Args:
        inputs: variables by name, or None for inputs that are passed to `compute_state`.
        states: an InitState by name.
        out_state: the name of the state that `out_state()` returns.
        name: the prefix of names of variables.

    Raises:
        ValueError: a state is no InitState, or `out_state` none of the states.
    """

    def __init__(
        self,
        inputs: Mapping[str, Any],
        states: Mapping[str, InitState],
        out_state: str,
        name: str | None = None,
    ) -> None:
        self._helper = LayerHelper("state_cell", name=name)
        for state in states.values():
            if not isinstance(state, InitState):
                raise ArgumentError(f"state must be an InitState object, got {type(state).__name__}")
        if out_state not in states:
            raise ArgumentError(f"out_state must be one state in states, {list(states)}, got {out_state!r}")
        self._inputs: dict[str, Any] = dict(inputs)
        self._initial = dict(states)
        self._states: dict[str, Any] = dict(states)
        self._out_state = out_state
        self._updater: Callable[[StateCell], Any] | None = None
        self._decoder: Any = None
        self._holders: dict[str, Any] | None = None

    def _enter_decoder(self, decoder: Any) -> None:
        if self._decoder is not None:
            raise ArgumentError("StateCell has already entered a decoder.")
        self._decoder = decoder

    def _leave_decoder(self, decoder: Any) -> None:
        if self._decoder is not decoder:
            raise ArgumentError("StateCell is not in the decoder that is left")
        self._decoder, self._holders = None, None
        self._states = dict(self._initial)

    def _switch_decoder(self) -> None:
        """Have the decoder hold the states, which it can as soon as its first input is known."""
        if self._decoder is not None and self._holders is None:
            self._holders = {name: self._decoder.holder(init) for name, init in self._initial.items()}
            self._states = {name: holder.get_state() for name, holder in self._holders.items()}

    def get_state(self, state_name: str) -> Any:
        """A state as it is now. Raises ValueError for an unknown name."""
        self._switch_decoder()
        if state_name not in self._states:
            raise ArgumentError(f"Unknown state {state_name}; there are {list(self._states)}")
        return self._states[state_name]

    def get_input(self, input_name: str) -> Any:
        """An input. Raises ValueError for an unknown name, and for one that has not been given yet."""
        if self._inputs.get(input_name) is None:
            raise ArgumentError(f"Invalid input {input_name}.")
        return self._inputs[input_name]

    def set_state(self, state_name: str, state_value: Any) -> None:
        """Let a state be `state_value` from now on."""
        self._states[state_name] = state_value

    def state_updater(self, updater: Callable[[StateCell], Any]) -> Callable[[StateCell], None]:
        """A decorator for the function that computes new states; it is called with the cell."""
        self._updater = updater

        def checked(state_cell: StateCell) -> None:
            if state_cell is self:
                raise TypeError("Updater should only accept a StateCell object as argument.")
            updater(state_cell)

        return checked

    def compute_state(self, inputs: Mapping[str, Any]) -> None:
        """Call the updater with these inputs. Raises ValueError for an unknown one, TypeError without updater."""
        self._switch_decoder()
        for name, value in inputs.items():
            if name not in self._inputs:
                raise ArgumentError(f"Unknown input {name}. Please make sure {name} in input place holder.")
            self._inputs[name] = value
        if self._updater is None:
            raise TypeError("a StateCell needs a function that computes new states: see state_updater")
        self._updater(self)

    def update_states(self) -> None:
        """Let the next step begin with the states as they are now."""
        self._switch_decoder()
        for name, holder in (self._holders or {}).items():
            holder.update_state(self._states[name])

    def out_state(self) -> Any:
        """The state named so when the cell was made."""
        return self._states[self._out_state]
